"""Evidence caps by whole blocks.

What always holds: the tokens of what is kept never exceed the cap, no block is cut, and the order of ranks is kept.
"""

from collections.abc import Sequence

from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.values import Evidence


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
