"""Contexts without retrieval: Full Context, Current (prefix only), the newest K blocks, and extensions of the latter.

The paper does not define its scalar state. Ours is four numbers known before the action: the turn, and log token counts of the full
request, of the blocks that are left out, and of the last block.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pamer_lab.features.serialise import Hint
from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.rows import beside
from pamer_lab.studies.compact.values import FULL, RECENT, STATE, Columns, Group, Material, Need, Reading, Resources


@dataclass(frozen=True)
class FullContext:
    """Everything before the decision; with the faithful hint it is the teacher."""

    hint: Hint = "faithful"
    group: Group = FULL
    needs: frozenset[Need] = frozenset()

    @property
    def name(self) -> str:
        return "full" if self.hint == "faithful" else "full-no-hint"

    @property
    def label(self) -> str:
        return "Full Context" if self.hint == "faithful" else "Full Context, no hint"

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        return Reading(tuple(range(point.last + 1)), hint=self.hint)

    def represent(self, material: Material) -> Columns:
        return Columns(material.vectors(self))


@dataclass(frozen=True)
class Recent:
    """The prefix and the newest complete blocks."""

    count: int
    """Number of blocks kept; zero is Current, the prefix alone."""
    group: Group = RECENT
    needs: frozenset[Need] = frozenset()

    @property
    def name(self) -> str:
        return f"recent{self.count}" if self.count else "current"

    @property
    def label(self) -> str:
        return self.name.capitalize()

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        return Reading(point.recent(self.count))

    def represent(self, material: Material) -> Columns:
        return Columns(material.vectors(self))


@dataclass(frozen=True)
class _Extended:
    """Reads the text of a recent context and gives the probe more than its state."""

    base: Recent
    group: Group = STATE
    needs: frozenset[Need] = frozenset()
    suffix: ClassVar[str]
    addition: ClassVar[str]

    @property
    def name(self) -> str:
        return f"{self.base.name}-{self.suffix}"

    @property
    def label(self) -> str:
        return f"{self.base.label} + {self.addition}"

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        return self.base.read(point, resources)


class Distilled(_Extended):
    """The same text and state as a recent context, taught by the Full Context teacher of the same seed."""

    suffix, addition = "kd", "decision KD"

    def represent(self, material: Material) -> Columns:
        return Columns(material.vectors(self.base), taught=True)


class ScalarState(_Extended):
    """A recent context, its state extended by four scalars."""

    suffix, addition = "scalar", "scalar state"

    def represent(self, material: Material) -> Columns:
        scalars = np.array([scalars_of(point, self.base.count, material.counts) for point in material.points], dtype=np.float32)
        return Columns(beside(material.vectors(self.base), scalars))


def scalars_of(point: DecisionPoint, recent: int, counts: Counts) -> tuple[float, float, float, float]:
    """Turn, and log tokens of the request, of what a recent window leaves out, and of the last block."""
    whole = counts.full(point)
    left_out = whole - counts.context(point, point.recent(recent))
    last = counts.block(point, point.last) if point.last >= 0 else 0
    return float(point.t), float(np.log1p(whole)), float(np.log1p(left_out)), float(np.log1p(last))
