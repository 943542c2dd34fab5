"""A probe's input at each decision, in memory or read in parts, with the same operations (select, join, average, statistics) for both.

Knows neither conditions nor models. Invariant: nothing here keeps more rows in memory than `held` allows, or one item if that is more.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.circle import Numbers, States
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.scratch import Scratch

Rows = Floats | States
"""[n, d] in memory, or one feature set [1, n, d] that is read in parts."""


def held(rows: Rows) -> int:
    """Rows that may be in memory at once."""
    return sys.maxsize if isinstance(rows, np.ndarray) else rows.held


def read(rows: Rows, numbers: Numbers) -> Floats:
    """[r, d]"""
    return rows[numbers] if isinstance(rows, np.ndarray) else rows.read(0, numbers)


def parts(rows: Rows, numbers: Numbers | None = None) -> Iterator[Floats]:
    """These rows, or all of them, in order; in a single part if they are in memory."""
    if isinstance(rows, np.ndarray):
        yield rows if numbers is None else rows[numbers]
        return
    asked = np.arange(rows.shape[1]) if numbers is None else numbers
    for start in range(0, len(asked), rows.held):
        yield rows.read(0, asked[start : start + rows.held])


def slices(sizes: Sequence[int], most: int) -> Iterator[slice]:
    """Group consecutive items up to a total size of `most`; a larger item forms its own group."""
    start = total = 0
    for number, size in enumerate(sizes):
        if number > start and total + size > most:
            yield slice(start, number)
            start, total = number, 0
        total += size
    if sizes:
        yield slice(start, len(sizes))


def statistics(rows: Rows, numbers: Numbers) -> tuple[Floats, Floats]:
    """Mean and standard deviation of some rows, in two passes; a constant feature has scale one."""
    total = sum(part.sum(0, dtype=np.float64) for part in parts(rows, numbers))
    mean: npt.NDArray[np.float64] = np.asarray(total) / len(numbers)
    square = np.zeros_like(mean)
    for part in parts(rows, numbers):
        apart = part - mean
        square += np.multiply(apart, apart, out=apart).sum(0)
    scale = np.sqrt(square / len(numbers))
    return mean.astype(np.float32), np.where(scale > 1e-5, scale, 1.0).astype(np.float32)


def at_hand(rows: Rows) -> Rows:
    """The same rows in a place that is fast to read repeatedly: in memory if they already are, else in a scratch file."""
    if isinstance(rows, np.ndarray):
        return rows
    copy = Scratch(rows.shape[-1], rows.held)
    for part in parts(rows):
        copy.add(part)
    return copy


def taken(rows: Rows, numbers: Numbers) -> Rows:
    """Some rows, in this order; of an array [F, n, d] those of all its feature sets."""
    return np.ascontiguousarray(rows[..., numbers, :]) if isinstance(rows, np.ndarray) else Taken(rows, numbers)


def beside(left: Rows, right: Rows) -> Rows:
    """[n, d + d']"""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.concatenate([left, right], 1)
    return Beside(left, right)


def means(rows: Rows, picks: Sequence[Numbers]) -> Rows:
    """[picks, d]: the mean of the picked rows; each pick has at least one."""
    found = Means(rows, picks)
    return found.read(0, np.arange(len(picks))) if isinstance(rows, np.ndarray) else found


@dataclass(frozen=True)
class Taken:
    """Some rows of other states."""

    states: States
    numbers: Numbers

    @property
    def shape(self) -> tuple[int, int, int]:
        sets, _, width = self.states.shape
        return sets, len(self.numbers), width

    @property
    def held(self) -> int:
        return self.states.held

    def read(self, feature_set: int, rows: Numbers) -> Floats:
        return self.states.read(feature_set, self.numbers[rows])


@dataclass(frozen=True)
class Beside:
    """Rows of two sources, concatenated."""

    left: Rows
    right: Rows

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, self.left.shape[-2], self.left.shape[-1] + self.right.shape[-1]

    @property
    def held(self) -> int:
        """Fewer than for either side, because a row is as wide as both together."""
        width = self.shape[-1]
        return max(1, min(held(side) * int(side.shape[-1]) // width for side in (self.left, self.right)))

    def read(self, feature_set: int, rows: Numbers) -> Floats:
        return np.concatenate([read(self.left, rows), read(self.right, rows)], 1)


@dataclass(frozen=True)
class Means:
    """Means of picked rows, which are read whenever a mean is."""

    rows: Rows
    picks: Sequence[Numbers]

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, len(self.picks), self.rows.shape[-1]

    @property
    def held(self) -> int:
        """Half as many as may be read, because what is picked is in memory with its means."""
        return max(1, held(self.rows) // 2)

    def read(self, feature_set: int, rows: Numbers) -> Floats:
        picks = [self.picks[row] for row in rows]
        some = slices([len(own) for own in picks], held(self.rows))
        return np.concatenate([self._means(picks[own]) for own in some])

    def _means(self, picks: Sequence[Numbers]) -> Floats:
        needed, place = np.unique(np.concatenate(picks), return_inverse=True)
        states = read(self.rows, needed)
        ends = np.cumsum([len(own) for own in picks])
        return np.stack([states[own].mean(0) for own in np.split(place, ends[:-1])])
