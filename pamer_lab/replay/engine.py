"""One trace, one policy -> one run, turn by turn.

The engine shows the policy only what stands before the turn, checks its answer against the ledger, and stores it. A run's
id is a hash of what determines it (trace, policy, settings, profile, tokenizer, turn limit), so replaying the same thing
again finds the stored turns and computes only the missing ones; a run that is complete is returned as it is. Turns are
stored at once, except that turns which come faster than `STORE_EVERY` are stored together: a killed process loses at most
that much work. One process at a time works on a run (a lock file that the system releases when a process dies).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from pamer_lab.blocks import MessageTokens
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.summary import Summariser
from pamer_lab.policies.interface import Policy, PolicySession
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.values import Answer, History
from pamer_lab.replay import ledger
from pamer_lab.replay.accounting import totals
from pamer_lab.replay.prefix_cache import cached_tokens
from pamer_lab.replay.store import RunStore
from pamer_lab.replay.timeline import Timeline, lay_out
from pamer_lab.replay.values import Run, RunHead, Turn
from pamer_lab.trajectory.values import Trace
from pamer_lab.storage import equals
from pamer_lab.workspace import Workspace

VERSION = 1
"""Raised whenever the same inputs would give other turns, so that no run mixes two programs' turns."""
STORE_EVERY = 0.25
"""Seconds; turns that follow each other faster are stored in one commit."""

Watcher = Callable[[Turn, int], None]
"""Told of each new turn and of the number of turns in all."""


@dataclass(frozen=True)
class ReplayOptions:
    """How a replay is run; only `turn_limit` and `profile` change its result."""

    profile: str = "embedded"
    device: str = "auto"
    turn_limit: int = 0
    """Replay only the first turns; 0 means all."""
    fresh: bool = False
    """Forget a stored run and compute it again."""
    watch: Watcher | None = None
    cancelled: Callable[[], bool] = field(default=lambda: False)
    """Asked before each turn."""


@dataclass
class _Resources:
    workspace: Workspace
    tokens: MessageTokens
    session_id: str
    profile: str
    device: str

    @cached_property
    def summariser(self) -> Summariser:
        return ExtractiveSummariser(self.tokens.counter)


def replay(trace: Trace | str, policy: str | Policy, workspace: Workspace, options: ReplayOptions | None = None) -> Run:
    """Replay a trace (or the stored trace of that id) through a policy and return the run.

    Actions are fixed: the run measures contexts, decisions and tokens, never task reward.
    """
    options = options or ReplayOptions()
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    tokens = message_tokens(options.profile)
    timeline, demo = _timeline(trace, workspace, tokens, options.turn_limit)
    head = _head(timeline, chosen, options.profile, demo)
    store = RunStore(workspace)
    lock = FileLock(workspace.path / "locks" / f"{head.run_id}.lock")
    workspace.path.joinpath("locks").mkdir(parents=True, exist_ok=True)
    try:
        with lock.acquire(timeout=0):
            return _Replaying(timeline, chosen, head, store, options, _Resources(workspace, tokens, head.run_id, options.profile, options.device)).run()
    except Timeout as error:
        raise InputError(f"run {head.run_id} is being replayed by another process; follow it, or wait until it ends") from error


class _Replaying:
    """The loop over the turns of one run."""

    def __init__(
        self, timeline: Timeline, policy: Policy, head: RunHead, store: RunStore, options: ReplayOptions, resources: _Resources
    ) -> None:
        self.timeline, self.policy, self.head, self.store, self.options = timeline, policy, head, store, options
        self.resources = resources
        self.turns: list[Turn] = []
        self.stored = 0

    def run(self) -> Run:
        known = None if self.options.fresh else self.store.head(self.head.run_id)
        if self.options.fresh:
            self.store.remove(self.head.run_id)
        if known is not None:
            self.turns = self.store.turns(self.head.run_id)
            self.stored = len(self.turns)
            if known.status == "done" and self.stored == known.turns:
                return Run(known, tuple(self.turns))
            self.store.forget_after(self.head.run_id, self.stored)
            self.head = msgspec.structs.replace(self.head, started=known.started)
        self.store.put_head(self.head)
        try:
            self._loop()
        except Cancelled as error:
            self._end("cancelled", str(error))
            raise
        except KeyboardInterrupt:
            self._end("cancelled", "interrupted; replaying again goes on from here")
            raise
        except Exception as error:
            self._end("failed", f"{type(error).__name__}: {error}")
            raise
        return self._end("done")

    def _loop(self) -> None:
        session = self.policy.start(self.resources)
        session.resume([turn.answer() for turn in self.turns])
        last_stored = time.monotonic()
        for t in range(len(self.turns), self.timeline.turns):
            if self.options.cancelled():
                raise Cancelled(f"stopped before turn {t}; the turns before it are kept, and replaying again goes on from there")
            self.turns.append(self._turn(session, t))
            if time.monotonic() - last_stored >= STORE_EVERY:
                self._flush()
                last_stored = time.monotonic()
            if self.options.watch:
                self.options.watch(self.turns[-1], self.timeline.turns)

    def _turn(self, session: PolicySession, t: int) -> Turn:
        began = time.perf_counter()
        history = self.timeline.at(t)
        answer = session.turn(history)
        ledger.check(answer, history)
        return self._record(answer, history, began)

    def _record(self, answer: Answer, history: History, began: float) -> Turn:
        previous = self.turns[-1].items if self.turns else ()
        return Turn(
            t=history.t,
            action=answer.action,
            reason=answer.reason,
            raw_tokens=history.raw_tokens,
            active_tokens=answer.tokens,
            candidate_tokens=answer.candidate_tokens,
            output_tokens=self.timeline.output_tokens[history.t],
            cached_tokens=cached_tokens(previous, answer.items, history.cumulative, self.resources.tokens.counter),
            states=ledger.letters(answer, history.t),
            items=answer.items,
            stored=answer.stored,
            logits=answer.logits,
            thresholds=answer.thresholds,
            votes=answer.votes,
            memory_ids=answer.memory_ids,
            restored_steps=answer.restored_steps,
            spent=answer.spent,
            error=answer.error,
            seconds=time.perf_counter() - began,
        )

    def _flush(self) -> None:
        if self.stored < len(self.turns):
            self.store.add_turns(self.head.run_id, self.turns[self.stored :])
            self.stored = len(self.turns)

    def _end(self, status: Any, error: str = "") -> Run:
        self._flush()
        counted = totals(self.timeline, self.turns)
        self.head = msgspec.structs.replace(self.head, status=status, error=error, totals=counted, finished=_now())
        self.store.put_head(self.head)
        return Run(self.head, tuple(self.turns))


def message_tokens(profile: str) -> MessageTokens:
    """The token counter of a profile, remembered for the life of the process."""
    from pamer_lab.models.tokenizer import embedded_counter

    counter = embedded_counter()
    return _COUNTERS.setdefault(counter.name, MessageTokens(counter))


_COUNTERS: dict[str, MessageTokens] = {}


def run_id(trace_id: str, policy: Policy, profile: str, tokenizer: str, turn_limit: int) -> str:
    """The id of the run that these inputs determine."""
    parts = [VERSION, trace_id, policy.name, policy.settings, profile, tokenizer, turn_limit]
    return "r-" + sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:16]


def _timeline(trace: Trace | str, workspace: Workspace, tokens: MessageTokens, turn_limit: int) -> tuple[Timeline, bool]:
    if isinstance(trace, Trace):
        known = workspace.path.exists() and workspace.trace_rows(equals("trace_id", trace.trace_id))
        if not known:
            workspace.add_traces([trace], tokens)
        return lay_out(trace, tokens, turn_limit=turn_limit), bool(known and known[0]["demo"])
    stored = workspace.trace(trace)
    counts = stored.message_tokens if stored.row["tokenizer"] == tokens.counter.name else None
    return lay_out(stored.trace, tokens, turn_limit=turn_limit, counts=counts), bool(stored.row["demo"])


def _head(timeline: Timeline, policy: Policy, profile: str, demo: bool) -> RunHead:
    trace = timeline.trace
    limit = timeline.turns if timeline.turns < len(timeline.pieces.blocks) else 0
    return RunHead(
        run_id=run_id(trace.trace_id, policy, profile, timeline.tokenizer, limit),
        trace_id=trace.trace_id,
        question_id=trace.question_id,
        task_id=trace.task_id,
        policy=policy.name,
        profile=profile,
        settings=dict(policy.settings),
        tokenizer=timeline.tokenizer,
        tokens_kind=timeline.kind,
        turns=timeline.turns,
        trace_turns=len(timeline.pieces.blocks),
        prefix_tokens=timeline.prefix_tokens,
        tools_tokens=timeline.tools_tokens,
        block_tokens=tuple(timeline.block_tokens[: timeline.turns]),
        incomplete=tuple(block.index for block in timeline.pieces.blocks[: timeline.turns] if not block.complete),
        started=_now(),
        demo=demo,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
