"""Full Context, Current (prefix only) and the newest K blocks: contexts that need no choice."""

from dataclasses import dataclass

from pamer_lab.features.serialise import Hint
from pamer_lab.studies.compact.groups import FULL, RECENT, Group
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.values import Columns, Material, Need, Reading, Resources


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
    """Blocks kept; zero is Current, the prefix alone."""
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
