"""Test scores of a row in compact form: the distance of each decision to its seed's threshold, positives and negatives apart.

A margin is a logit minus the threshold of its seed, in half precision, which is finest near zero.
Invariant: a decision's side of the threshold survives packing, so the counts at shift 0 are those the row's F1 was computed from.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.intervals import Scored

Halves = npt.NDArray[np.float16]
SMALLEST = np.float16(6e-8)
"""The half-precision number next to zero; what is nearer becomes this, on its own side."""


@dataclass(frozen=True)
class Margins:
    """One seed's test part."""

    positive: Halves
    negative: Halves


@dataclass(frozen=True)
class Confusion:
    """How decisions came out at a threshold."""

    hits: int
    misses: int
    false_alarms: int
    rejections: int
    """Negatives that were left alone."""

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
    """The margins of a row as text, a string for each seed; NaN scores are left out."""
    return {
        name: [_encode((scored.logits - scored.threshold)[(scored.labels == value) & np.isfinite(scored.logits)]) for scored in seeds]
        for name, value in (("positive", True), ("negative", False))
    }


def unpack(row: dict[str, Any]) -> list[Margins]:
    """The margins of a row, seed by seed; empty where the row holds none."""
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
