"""Inputs that share beginnings -> a tree of runs in which every token occurs once.

Pure arrays: no model, no messages. A `Run` is a stretch of tokens from a fork to the end of the longest input along it; other inputs
either end on it or fork off it.
Invariant: following the runs to an input's end gives exactly that input's tokens, and tokens that two inputs share at their beginning are
in one run (except fewer than `min_share` after a fork, where sharing would cost more than it saves).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]


@dataclass
class Run:
    """Tokens from position `start` on."""

    start: int
    tokens: Tokens
    ends: list[tuple[int, int]] = field(default_factory=list)
    """(length, input): inputs that end on this run after `length` tokens counted from the root."""
    forks: list["Run"] = field(default_factory=list)
    """Runs that branch off this one; their `start` is within it."""

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)

    def walk(self) -> Iterator["Run"]:
        """This run and all below it."""
        yield self
        for fork in self.forks:
            yield from fork.walk()

    def size(self) -> int:
        """Tokens to compute."""
        return sum(len(run.tokens) for run in self.walk())


def build(inputs: Sequence[Tokens], *, min_share: int = 1, boundary: int = -1) -> list[Run]:
    """The runs that cover all inputs; inputs with nothing in common at their beginning give several roots.

    With `min_share` above one, a fork moves back to the last `boundary` token, or to an existing fork, when that
    costs fewer than `min_share` tokens: recurrent layers need a snapshot for every place where something forks.
    """
    roots: list[Run] = []
    for index in sorted(range(len(inputs)), key=lambda number: -len(inputs[number])):
        tokens = inputs[index]
        if not len(tokens):
            raise ValueError("an input without tokens has no state")
        root = next((run for run in roots if run.tokens[0] == tokens[0]), None)
        if root is None:
            roots.append(Run(0, tokens, [(len(tokens), index)]))
        else:
            _insert(root, tokens, index, min_share, boundary)
    return roots


def _insert(run: Run, tokens: Tokens, index: int, min_share: int, boundary: int) -> None:
    while True:
        shared = run.start + common_prefix(run.tokens, tokens[run.start :])
        if shared == len(tokens):
            run.ends.append((shared, index))
            return
        place = _fork_place(run, tokens, shared, min_share, boundary) if min_share > 1 else shared
        child = next((fork for fork in run.forks if fork.start == place and _same_head(fork, tokens, min_share)), None)
        if child is None:
            run.forks.append(Run(place, tokens[place:], [(len(tokens), index)]))
            return
        run = child


def _same_head(fork: Run, tokens: Tokens, count: int) -> bool:
    head = tokens[fork.start : fork.start + count]
    return len(head) == count and np.array_equal(fork.tokens[:count], head)


def _fork_place(run: Run, tokens: Tokens, shared: int, min_share: int, boundary: int) -> int:
    lowest = max(run.start, shared - min_share + 1)
    there = [fork.start for fork in run.forks if lowest <= fork.start <= shared]
    if there:
        return max(there)
    marks = np.flatnonzero(tokens[lowest : shared + 1] == boundary)
    return lowest + int(marks[-1]) if len(marks) else shared


def common_prefix(left: Tokens, right: Tokens) -> int:
    """How many tokens two inputs share at their beginning."""
    size = min(len(left), len(right))
    different = np.flatnonzero(left[:size] != right[:size])
    return int(different[0]) if len(different) else size
