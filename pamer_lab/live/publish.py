"""Publishes live sessions as traces and runs of the workspace, so that every page and command can read them.

Publishing again adds what is new; replays of a trace that has grown are deleted, because they belong to the shorter trace. One process
at a time publishes a session. Invariant: what is published matches the session's frames.
"""

from pathlib import Path

from filelock import FileLock
from msgspec import structs

from pamer_lab.blocks import MessageTokens
from pamer_lab.live.record import Record
from pamer_lab.live.summary import run_of
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.timeline import Timeline, lay_out
from pamer_lab.storage import equals
from pamer_lab.workspace import Workspace


def publish(workspace: Workspace, record: Record, tokens: MessageTokens | None = None) -> bool:
    """Bring a session's trace and run up to date; False if there is nothing to publish yet.

    `tokens`: the token counter of the session; None uses its profile's tokenizer.
    """
    trace = record.trace
    if trace is None or not trace.turns:
        return False
    lock = FileLock(Path(workspace.path) / "locks" / f"{record.trace_id}.lock", timeout=60)
    Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
    with lock:
        tokens = tokens or profile_tokens(load_profile(record.opened.profile, workspace.path))
        store = RunStore(workspace)
        known = workspace.trace_rows(equals("trace_id", record.trace_id))
        counts = (len(trace.messages), sum(tokens.counts(trace.messages)) + tokens.tools(trace.tools))
        if not known or (known[0]["messages"], known[0]["tokens"]) != counts:
            workspace.add_traces([trace], tokens)
            for head in store.heads(trace_id=record.trace_id):
                if not head.run_id.startswith(f"r-{record.trace_id}"):
                    store.remove(head.run_id)
        if tokens.counter.name == record.opened.tokenizer:
            _publish_run(store, record, lay_out(trace, tokens))
    return True


def _publish_run(store: RunStore, record: Record, line: Timeline) -> None:
    # A turn that has no answer yet is not part of the trace.
    turns = [structs.replace(turn, output_tokens=line.output_tokens[turn.t]) for turn in record.turns[: line.turns]]
    if not turns:
        return
    stored, newest = store.stored_count(record.run_id), store.last_turn(record.run_id)
    if newest and newest.t < len(turns) and newest.raw_tokens != turns[newest.t].raw_tokens:
        # The client dropped that answer and added messages: the turn was decided again.
        stored = newest.t
        store.forget_after(record.run_id, stored)
    if stored < len(turns):
        store.add_turns(record.run_id, turns[stored:])
    run = run_of(record, turns)
    head = structs.replace(
        run.head,
        trace_turns=line.turns,
        prefix_tokens=line.prefix_tokens,
        tools_tokens=line.tools_tokens,
        block_tokens=tuple(line.block_tokens[: len(turns)]),
        incomplete=tuple(block.index for block in line.pieces.blocks[: len(turns)] if not block.complete),
        totals=totals(line, turns) | {"live": True},
        times=run.head.times[: len(turns)],
    )
    store.put_head(head)
