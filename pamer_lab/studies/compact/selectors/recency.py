"""Recency Top-K: the newest of the older blocks, so that the context is one unbroken stretch."""

from dataclasses import dataclass

from pamer_lab.studies.compact.groups import CONTROLS, Group
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.selectors import ranked
from pamer_lab.studies.compact.values import Evidence, Need, Resources


@dataclass(frozen=True)
class ByRecency:
    """Ranks by place."""

    name: str = "recency"
    label: str = "Recency"
    group: Group = CONTROLS
    needs: frozenset[Need] = frozenset()

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        return ranked(old, [float(number) for number in old])
