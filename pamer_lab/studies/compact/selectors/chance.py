"""Random Top-K: older blocks in an order drawn by a hash of trace, decision point and block, the same on every machine."""

import hashlib
from dataclasses import dataclass

from pamer_lab.studies.compact.groups import CONTROLS, Group
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.selectors import ranked
from pamer_lab.studies.compact.values import Evidence, Need, Resources


@dataclass(frozen=True)
class ByChance:
    """Ranks by lot."""

    seed: int = 0
    name: str = "random"
    label: str = "Random"
    group: Group = CONTROLS
    needs: frozenset[Need] = frozenset()

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        return ranked(old, [lot(self.seed, point.trace_id, point.t, number) for number in old])


def lot(seed: int, trace_id: str, t: int, block: int) -> float:
    """A number in [0, 1) that only its arguments decide."""
    digest = hashlib.sha256(f"{seed}/{trace_id}/{t}/{block}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
