"""`P + E + R`: Recent2 and the best K older blocks by some selector, under an optional cap.

Evidence stands in its recorded order between the prefix and Recent2, whatever its rank: that is the order the agent saw.
Invariant: the tokens of what a cap keeps never exceed it, no block is cut, and the order of ranks is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pamer_lab.studies.compact.groups import BUDGET, Group
from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.selectors import Selector
from pamer_lab.studies.compact.values import Columns, Evidence, Material, Need, Reading, Resources


@dataclass(frozen=True)
class Retrieved:
    """Recent2 with raw evidence."""

    selector: Selector
    k: int
    cap: int = 0
    """Most tokens of evidence; zero means no cap."""

    @property
    def name(self) -> str:
        return f"{self.selector.name}-top{self.k}" + (f"-cap{self.cap}" if self.cap else "")

    @property
    def label(self) -> str:
        return f"{self.selector.label} Top{self.k}" + (f", cap {cap_words(self.cap)}" if self.cap else "")

    @property
    def group(self) -> Group:
        return BUDGET if self.cap else self.selector.group

    @property
    def needs(self) -> frozenset[Need]:
        return self.selector.needs

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        best = self._ranking(point, resources)[: self.k]
        kept = within_cap(point, best, self.cap, resources.counts)
        return Reading(tuple(sorted((*(one.block for one in kept), *point.window.recent))), kept)

    def represent(self, material: Material) -> Columns:
        return Columns(material.vectors(self))

    def _ranking(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        """Top1, Top3, Top5 and the caps share one ranking."""
        key = ("ranking", self.selector, point.trace_id, point.t)
        if key not in resources.memo:
            resources.memo[key] = self.selector.rank(point, resources)
        found: list[Evidence] = resources.memo[key]
        return found


def cap_words(cap: int) -> str:
    """8192 -> 8K, 500 -> 500 tokens."""
    return f"{cap // 1024}K" if cap % 1024 == 0 else f"{cap:,} tokens"


def within_cap(point: DecisionPoint, ranked: Sequence[Evidence], cap: int, counts: Counts) -> tuple[Evidence, ...]:
    """Best first, each block that still fits; one that does not is left out and the next is tried. Zero means no cap."""
    kept: list[Evidence] = []
    used = 0
    for evidence in ranked:
        size = counts.block(point, evidence.block)
        if not cap or used + size <= cap:
            kept.append(evidence)
            used += size
    return tuple(kept)
