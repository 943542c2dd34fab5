"""Rankings of older blocks, one selector per file.

A selector sees a decision point and the blocks it may retrieve: complete ones older than Recent2.
Invariant: it returns those blocks once each, best first; ties go to the newer block; the same point gives the same ranking.
"""

from collections.abc import Sequence
from typing import Protocol

from pamer_lab.studies.compact.groups import Group
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.values import Evidence, Need, Resources


class Selector(Protocol):
    """Ranks the older blocks of a decision point."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def group(self) -> Group: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        """All eligible blocks, best first."""
        ...


def ranked(blocks: Sequence[int], scores: Sequence[float]) -> list[Evidence]:
    """Blocks by falling score, newer first among equals."""
    return sorted(
        (Evidence(block, float(score)) for block, score in zip(blocks, scores, strict=True)), key=lambda one: (-one.score, -one.block)
    )
