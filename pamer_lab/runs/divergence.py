"""The first turn where two runs of one trace show the model different contexts, and how they differ there.

Contexts are compared by what the model would read: the positions of raw blocks, and the exact added texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pamer_lab.decisions import Item, blocks_of
from pamer_lab.errors import InputError
from pamer_lab.runs.values import Run, Turn


@dataclass(frozen=True)
class Divergence:
    """The answer for a pair of runs."""

    first: str
    second: str
    t: int | None
    """None when they never differ over the turns both have."""
    compared: int
    only_first: tuple[dict[str, Any], ...] = ()
    """Items that only the first context has, in order."""
    only_second: tuple[dict[str, Any], ...] = ()

    @property
    def sentence(self) -> str:
        if self.t is None:
            return f"{self.first} and {self.second} show the same context at all {self.compared} turns"
        return f"{self.first} and {self.second} first differ at turn {self.t}"


def first_divergence(one: Run, other: Run) -> Divergence:
    """Compare two runs of the same trace."""
    if one.head.trace_id != other.head.trace_id:
        raise InputError(f"runs {one.run_id} and {other.run_id} replay different traces; choose two runs of one trace")
    compared = min(len(one.turns), len(other.turns))
    for a, b in zip(one.turns, other.turns, strict=False):
        if _content(a) != _content(b):
            return Divergence(one.head.policy, other.head.policy, a.t, compared, *_difference(a, b))
    return Divergence(one.head.policy, other.head.policy, None, compared)


def _content(turn: Turn) -> list[tuple[Any, ...]]:
    return [_key(item) for item in turn.items]


def _key(item: Item) -> tuple[Any, ...]:
    return (item.role, item.text) if item.text else (item.kind, item.spans, item.tokens)


def _difference(a: Turn, b: Turn) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    return tuple(_only(a.items, b.items)), tuple(_only(b.items, a.items))


def _only(mine: Sequence[Item], theirs: Sequence[Item]) -> list[dict[str, Any]]:
    raw = set(blocks_of(span for item in theirs if item.kind == "blocks" for span in item.spans))
    texts = {_key(item) for item in theirs if item.text}
    rows: list[dict[str, Any]] = []
    for item in mine:
        if item.kind == "blocks":
            rows += [{"kind": "block", "block": number} for number in blocks_of(item.spans) if number not in raw]
        elif item.kind == "edited" and _key(item) not in texts:
            rows.append({"kind": "block", "block": item.spans[0][0], "source": item.source, "tokens": item.tokens, "text": item.text})
        elif item.text and _key(item) not in texts:
            rows.append({"kind": item.kind, "source": item.source, "tokens": item.tokens, "text": item.text})
    return rows
