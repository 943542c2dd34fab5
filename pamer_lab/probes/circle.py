"""The rows that a tile trains on, in their shared order: in memory, or in a scratch file of which a bounded number is read at a time.

Both give the same windows in the same units, so that a probe is the same, within float tolerance, either way.
Invariant: a `FileCircle` never has more rows in memory than its states allow, or one window if that is more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import ProbeError
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.scratch import Scratch

if TYPE_CHECKING:
    from torch import Tensor

Numbers = npt.NDArray[np.int64]
Part = tuple[Any, "Tensor"]
"""The positions of some rows, and the rows: [F, r, d]."""


class States(Protocol):
    """Feature sets that are not in memory and are read in parts."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """[F, n, d]"""
        ...

    @property
    def held(self) -> int:
        """Rows that may be in memory at once."""
        ...

    def read(self, feature_set: int, rows: Numbers) -> Floats:
        """[r, d]"""
        ...


class Circle(Protocol):
    """Rows that count, in their shared order, in units common to all seeds.

    Common units make folding in each seed's mean and scale accurate in float32. They are computed from all rows that count, but are only
    units: the standardisation a probe sees is that of its own training rows.
    """

    centre: Floats
    """[F, d]"""
    spread: Floats
    """[F, d]"""

    def window(self, start: int, size: int) -> "Tensor":
        """[F, size, d]; the last row is followed by the first."""
        ...

    def parts(self, asked: Numbers) -> Iterable[Part]:
        """Rows at these ascending positions of the order, with their positions in `asked`; can be iterated several times."""
        ...

    def statistics(self, train: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Mean and standard deviation of each seed's training rows, [F, S, d]; a constant feature has scale one."""
        ...

    def everything(self) -> Iterable[Part]:
        """All rows with their numbers in the features, including rows that do not count."""
        ...


class HeldCircle:
    """Rows in memory: [F, m + size, d], with the first `size` rows repeated at the end, so that a window is a slice."""

    def __init__(self, features: Floats, kept: Numbers, size: int, device: str) -> None:
        import torch

        self._features, self._kept, self._device = features, kept, device
        self.centre = np.stack([part[kept].mean(0, dtype=np.float64) for part in features]).astype(np.float32)
        spread = np.stack([(part[kept] - middle).std(0) for part, middle in zip(features, self.centre, strict=True)])
        self.spread = _scale(spread)
        circle = torch.empty(len(features), len(kept) + size, features.shape[-1])
        for number in range(len(features)):
            circle[number, : len(kept)] = torch.from_numpy(self._rows(number, kept))
        circle[:, len(kept) :] = circle[:, :size]
        self._circle = circle.to(device)

    def window(self, start: int, size: int) -> "Tensor":
        return self._circle[:, start : start + size]

    def parts(self, asked: Numbers) -> Iterable[Part]:
        import torch

        return [(slice(None), self._circle[:, torch.from_numpy(asked).to(self._device)])]

    def statistics(self, train: "Tensor") -> tuple["Tensor", "Tensor"]:
        import torch

        rows = self._circle[:, : len(self._kept)]
        count = train.sum(-1)[:, None]
        mean = torch.stack([(train @ part) / count for part in rows])
        square = torch.stack([(train @ part.square()) / count for part in rows])
        return mean, _deviation(mean, square)

    def everything(self) -> Iterator[Part]:
        import torch

        yield self._kept, self._circle[:, : len(self._kept)]
        others = np.setdiff1d(np.arange(self._features.shape[1]), self._kept)
        if len(others):
            rest = np.stack([self._rows(number, others) for number in range(len(self._features))])
            yield others, torch.from_numpy(rest).to(self._device)

    def _rows(self, feature_set: int, rows: Numbers) -> Floats:
        return np.asarray((self._features[feature_set][rows] - self.centre[feature_set]) / self.spread[feature_set])


class FileCircle:
    """One feature set in a scratch file in the shared order, so that a window is one read, or two where it wraps around."""

    def __init__(self, states: States, feature_set: int, kept: Numbers, device: str) -> None:
        self._states, self._set, self._kept, self._device = states, feature_set, kept, device
        self._width = states.shape[2]
        self._file = Scratch(self._width, states.held)
        total = np.zeros(self._width)
        for start, stop in self._chunks(len(kept)):
            rows = self._fetch(kept[start:stop])
            total += rows.sum(0, dtype=np.float64)
            self._file.add(rows)
        centre = (total / len(kept)).astype(np.float32)
        square = np.zeros(self._width)
        drift = np.zeros(self._width)  # `centre` is rounded, so the mean of the deviations is subtracted
        for start, stop in self._chunks(len(kept)):
            apart = self._slice(start, stop) - centre
            drift += apart.sum(0, dtype=np.float64)
            square += np.square(apart, dtype=np.float64).sum(0)
        spread = np.sqrt(np.maximum(square / len(kept) - np.square(drift / len(kept)), 0.0))
        self.centre, self.spread = centre[None], _scale(spread[None])

    def window(self, start: int, size: int) -> "Tensor":
        stop, count = start + size, len(self._kept)
        rows = self._slice(start, min(stop, count))
        return self._tensor(rows if stop <= count else np.concatenate([rows, self._slice(0, stop - count)]))

    def parts(self, asked: Numbers) -> Iterable[Part]:
        return _Again(self, asked)

    def chosen(self, asked: Numbers) -> Iterator[Part]:
        """One pass over `parts`."""
        for start, stop in self._chunks(len(self._kept)):
            own = slice(int(np.searchsorted(asked, start)), int(np.searchsorted(asked, stop)))
            if own.start < own.stop:
                yield own, self._tensor(self._slice(start, stop)[asked[own] - start])

    def statistics(self, train: "Tensor") -> tuple["Tensor", "Tensor"]:
        import torch

        count = train.sum(-1)[:, None].double()
        total, square = (torch.zeros(len(train), self._width, dtype=torch.float64, device=self._device) for _ in range(2))
        for start, stop in self._chunks(len(self._kept)):
            rows, own = self._tensor(self._slice(start, stop))[0].double(), train[:, start:stop].double()
            total += own @ rows
            square += own @ rows.square()
        mean, square = total / count, square / count
        return mean[None].float(), _deviation(mean, square)[None].float()

    def everything(self) -> Iterator[Part]:
        for start, stop in self._chunks(len(self._kept)):
            yield self._kept[start:stop], self._tensor(self._slice(start, stop))
        others = np.setdiff1d(np.arange(self._states.shape[1]), self._kept)
        for start, stop in self._chunks(len(others)):
            yield others[start:stop], self._tensor(self._fetch(others[start:stop]))

    def _chunks(self, count: int) -> Iterator[tuple[int, int]]:
        step = max(1, self._states.held)
        return ((start, min(start + step, count)) for start in range(0, count, step))

    def _fetch(self, rows: Numbers) -> Floats:
        found = self._states.read(self._set, rows)
        require_finite(self._set, rows, found)
        return found

    def _slice(self, start: int, stop: int) -> Floats:
        return self._file.between(start, stop)

    def _tensor(self, rows: Floats) -> "Tensor":
        import torch

        return torch.from_numpy((rows - self.centre[0]) / self.spread[0])[None].to(self._device)


@dataclass(frozen=True)
class _Again:
    """Parts of a file, read from it each time."""

    circle: FileCircle
    asked: Numbers

    def __iter__(self) -> Iterator[Part]:
        return self.circle.chosen(self.asked)


def require_finite(feature_set: int, numbers: Numbers, rows: Floats) -> None:
    """Refuse rows with NaN or infinity: one such value would spread to every weight that reads its feature set."""
    wrong = np.flatnonzero(~np.isfinite(rows).all(-1))
    if len(wrong):
        raise ProbeError(
            f"feature set {feature_set} contains NaN or infinity at row {numbers[wrong[0]]} ({len(wrong)} of {len(rows)} rows); "
            "no probe can learn from it: compute these states again, with a float32 model if this one runs in half precision"
        )


def _scale(spread: npt.NDArray[Any]) -> Floats:
    return np.where(spread > 1e-12, spread, 1.0).astype(np.float32)


def _deviation(mean: "Tensor", square: "Tensor") -> "Tensor":
    scale = (square - mean.square()).clamp(min=0.0).sqrt()
    return scale.where(scale > 1e-5, scale.new_ones(()))
