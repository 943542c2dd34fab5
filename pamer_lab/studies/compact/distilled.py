"""Recent blocks with decision distillation: the same text and state, taught by the Full Context teacher of the same seed."""

from dataclasses import dataclass

from pamer_lab.studies.compact.groups import STATE, Group
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.recent import Recent
from pamer_lab.studies.compact.values import Columns, Material, Need, Reading, Resources


@dataclass(frozen=True)
class Distilled:
    """A student on a recent context."""

    base: Recent
    group: Group = STATE
    needs: frozenset[Need] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.base.name}-kd"

    @property
    def label(self) -> str:
        return f"{self.base.label} + decision KD"

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        return self.base.read(point, resources)

    def represent(self, material: Material) -> Columns:
        return Columns(material.vectors(self.base), taught=True)
