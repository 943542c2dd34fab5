"""The turns of one replay, one by one: the policy sees what comes before a turn, and its decision is checked against the ledger."""

import time
from collections.abc import Iterator, Sequence

from pamer_lab.features.values import Cancel, OnProgress
from pamer_lab.policies.interface import Coming, Policy, ReadsAhead, Resources
from pamer_lab.runs.acting import made_turn
from pamer_lab.runs.ledger import Ledger
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import Turn


def replay_turns(
    timeline: Timeline,
    policy: Policy,
    resources: Resources,
    known: Sequence[Turn] = (),
    *,
    progress: OnProgress | None = None,
    cancelled: Cancel | None = None,
) -> Iterator[Turn]:
    """The turns after the known ones, each checked against the ledger; stores nothing of its own.

    `progress`, `cancelled`: for the states that are read ahead, before the first turn.
    """
    if isinstance(policy, ReadsAhead) and len(known) < timeline.turns:
        trace, blocks = timeline.trace, timeline.pieces.blocks
        policy.read_ahead(Coming(trace.messages, trace.tools, blocks, range(len(known), timeline.turns)), resources, progress, cancelled)
    session = policy.start(resources)
    session.resume(known)
    ledger = Ledger(known[-1].items if known else ())
    for t in range(len(known), timeline.turns):
        began = time.perf_counter()
        history = timeline.at(t)
        decision = session.turn(history)
        yield made_turn(decision, history, ledger, resources.tokens, output=timeline.output_tokens[t], seconds=time.perf_counter() - began)
