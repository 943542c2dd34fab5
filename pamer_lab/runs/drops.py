"""Drops: blocks that leave a request with nothing in their place, as events, with the evidence that later actions missed.

A block is dropped at the first turn whose request has neither its text nor a summary of it, and no memory keeps it.
Evidence is charged to the drop that took the last block which still had it. Knows stored turns and fates; no policy.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from pamer_lab.decisions import Span, blocks_of, spans_of
from pamer_lab.runs.evidence import Fate
from pamer_lab.runs.values import Turn


class Lost(Struct, frozen=True):
    """Evidence that was gone when a recorded action used it."""

    value: str
    kind: str
    seen_in: int
    """The block whose tool result showed it first."""
    used_at: int
    """The turn whose action used it."""


class Drop(Struct, frozen=True):
    """Blocks that one turn's request has lost."""

    t: int
    spans: tuple[Span, ...]
    tokens: int
    """Tokens of these blocks."""
    lost: tuple[Lost, ...] = ()
    """What later actions used of them, in the order of use."""

    @property
    def blocks(self) -> list[int]:
        return blocks_of(self.spans)


def drops(turns: Sequence[Turn], block_tokens: Sequence[int], found: Sequence[Fate] = ()) -> list[Drop]:
    """Drops of a run in turn order; `found`: the fates of its evidence, to list what was lost."""
    gone: dict[int, list[int]] = {}
    last: dict[int, list[int]] = {}  # block -> turns at which it was dropped
    before = np.zeros(0, dtype=bool)
    for turn in turns:
        absent = np.frombuffer(turn.states.encode(), dtype=np.uint8) == ord(".")
        new = absent.copy()
        new[: len(before)] &= ~before[: len(new)]
        for block in np.flatnonzero(new).tolist():
            gone.setdefault(turn.t, []).append(block)
            last.setdefault(block, []).append(turn.t)
        before = absent
    lost: dict[int, list[Lost]] = {}
    for fate in found:
        use = fate.use
        times = [t for block in use.blocks for t in last.get(block, ()) if t <= use.t]
        if fate.survival == "gone" and times:
            lost.setdefault(max(times), []).append(Lost(use.value, use.kind, use.seen_in, use.t))
    return [
        Drop(t, spans_of(blocks), sum(block_tokens[block] for block in blocks), tuple(lost.get(t, ())))
        for t, blocks in sorted(gone.items())
    ]


def drops_json(found: Sequence[Drop]) -> dict[str, Any]:
    """Drops for a command: how many blocks went at how many turns, and each event."""
    return {
        "turns": len(found),
        "blocks": len({block for drop in found for block in drop.blocks}),
        "evidence_lost": sum(len(drop.lost) for drop in found),
        "events": [to_builtins(drop) for drop in found],
    }
