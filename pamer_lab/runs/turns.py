"""The turns of one replay, one by one: the policy sees what comes before a turn, and its decision is checked against the ledger.

States are read ahead in pieces, so that turns come while later ones are still unread. Each piece reads the prefix again, so each is twice
as long as the one before it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pamer_lab.features.values import Cancel, OnProgress
from pamer_lab.jobs import Progress
from pamer_lab.policies.interface import Coming, Policy, ReadsAhead, Resources
from pamer_lab.runs.acting import made_turn
from pamer_lab.runs.ledger import Ledger
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.values import Turn

FIRST_PIECE = 16
"""Turns whose states are read before the first turn comes."""


def replay_turns(
    timeline: Timeline,
    policy: Policy,
    resources: Resources,
    known: Sequence[Turn] = (),
    *,
    progress: OnProgress | None = None,
    cancelled: Cancel | None = None,
) -> Iterator[Turn]:
    """The turns after the known ones, each checked against the ledger; stores nothing.

    `progress`, `cancelled`: for the states that are read ahead.
    """
    session = policy.start(resources)
    session.resume(known)
    ledger = Ledger(known[-1].items if known else ())
    for piece in pieces(len(known), timeline.turns):
        if isinstance(policy, ReadsAhead):
            trace = timeline.trace
            coming = Coming(trace.messages, trace.tools, timeline.pieces.blocks, piece)
            policy.read_ahead(coming, resources, progress and _of_all(timeline, len(known), piece, progress), cancelled)
        for t in piece:
            began = time.perf_counter()
            history = timeline.at(t)
            decision = session.turn(history)
            seconds = time.perf_counter() - began
            yield made_turn(decision, history, ledger, resources.tokens, output=timeline.output_tokens[t], seconds=seconds)


def pieces(start: int, end: int, size: int = FIRST_PIECE) -> Iterator[range]:
    """Consecutive ranges from `start` to `end`, each twice as long as the one before."""
    while start < end:
        yield range(start, min(start + size, end))
        start, size = start + size, 2 * size


def _of_all(timeline: Timeline, start: int, piece: range, progress: OnProgress) -> OnProgress:
    """Converts the progress of a piece to that of all turns from `start` on, in tokens of the trace: each block is read equally often."""
    read = [timeline.cumulative[t] - timeline.cumulative[start] for t in (piece.start, piece.stop, timeline.turns)]

    def report(own: Progress) -> None:
        progress(replace(own, done=read[0] + round(own.share_of_all * (read[1] - read[0])), total=read[2]))

    return report
