"""Distances of decisions from their threshold: a row's test scores in compact form, and how far a vote is from flipping (Appendix C.2).

A margin is a logit minus its seed's threshold, in half precision, which is finest near zero. Invariants: packing preserves a decision's
side of the threshold, so the counts at shift 0 are those from which the row's F1 was computed; a perturbation smaller than a vote's margin
changes nothing, and a slightly larger one can.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.metrics import Scored

Halves = npt.NDArray[np.float16]
SMALLEST = np.float16(6e-8)
"""The smallest half-precision number; smaller margins are rounded to it, keeping their sign."""


@dataclass(frozen=True)
class Margins:
    """The margins of one seed's test part."""

    positive: Halves
    negative: Halves


@dataclass(frozen=True)
class Confusion:
    """The confusion matrix of decisions at a threshold."""

    hits: int
    misses: int
    false_alarms: int
    rejections: int
    """True negatives."""

    @property
    def f1(self) -> float:
        wrong = self.misses + self.false_alarms
        return 2 * self.hits / (2 * self.hits + wrong) if self.hits or wrong else float("nan")

    @property
    def precision(self) -> float:
        called = self.hits + self.false_alarms
        return self.hits / called if called else float("nan")

    @property
    def recall(self) -> float:
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else float("nan")


def pack(seeds: Sequence[Scored]) -> dict[str, list[str]]:
    """The margins of a row as text, one string per class and seed; scores that are not finite are left out."""
    return {
        name: [_encode((scored.logits - scored.threshold)[(scored.labels == value) & np.isfinite(scored.logits)]) for scored in seeds]
        for name, value in (("positive", True), ("negative", False))
    }


def unpack(row: dict[str, Any]) -> list[Margins]:
    """The margins of a row, seed by seed; empty if the row has none."""
    kept = row.get("margins")
    if not kept:
        return []
    return [Margins(_decode(one), _decode(other)) for one, other in zip(kept["positive"], kept["negative"], strict=True)]


def confusion(seeds: Sequence[Margins], shift: float = 0.0) -> Confusion:
    """Counts over these seeds' test parts with every threshold moved by `shift`."""
    hits = sum(int((seed.positive.astype(np.float64) >= shift).sum()) for seed in seeds)
    alarms = sum(int((seed.negative.astype(np.float64) >= shift).sum()) for seed in seeds)
    positives, negatives = (sum(len(part) for part in parts) for parts in zip(*((s.positive, s.negative) for s in seeds), strict=True))
    return Confusion(hits, positives - hits, alarms, negatives - alarms)


def _encode(values: npt.NDArray[Any]) -> str:
    small = np.clip(values, -6e4, 6e4).astype("<f2")
    lost = (small == 0) & (values != 0)
    small[lost] = np.where(values[lost] > 0, SMALLEST, -SMALLEST)
    return base64.b64encode(small.tobytes()).decode()


def _decode(text: str) -> Halves:
    return np.frombuffer(base64.b64decode(text), dtype="<f2").astype(np.float16)


@dataclass(frozen=True)
class VoteMargins:
    """Margins of one decision, all on the logit scale."""

    heads: tuple[float, ...]
    """Per head, the smallest shift of its logit that flips its vote."""
    vote: float
    """The smallest shift that flips any one vote."""
    majority: float
    """The smallest bound on all shifts under which the majority can flip; infinite if no shift can flip it."""
    yes: int
    """How many heads say yes."""


def vote_margins(
    logits: npt.NDArray[Any] | Sequence[float], threshold_logits: npt.NDArray[Any] | Sequence[float], needed: int = 3
) -> VoteMargins:
    """Margins of a vote in which `needed` heads must say yes."""
    distance = np.asarray(logits, dtype=np.float64) - np.asarray(threshold_logits, dtype=np.float64)
    says_yes = distance >= 0
    yes = int(says_yes.sum())
    agreeing = np.sort(np.abs(distance[says_yes if yes >= needed else ~says_yes]))
    flips = yes - needed + 1 if yes >= needed else needed - yes
    majority = float(agreeing[flips - 1]) if 1 <= flips <= len(agreeing) else float("inf")
    heads = tuple(float(value) for value in np.abs(distance))
    return VoteMargins(heads, min(heads), majority, yes)
