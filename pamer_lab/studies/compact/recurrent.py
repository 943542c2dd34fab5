"""GRU512: a recurrent network reads all stored block states; its state stands beside the base, with or without Similarity5."""

from dataclasses import dataclass

import numpy as np

from pamer_lab.studies.compact.groups import HIDDEN, Group
from pamer_lab.studies.compact.hidden_bank import BASE, HiddenBank
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.values import Material, Need, Reading, Resources, Steps


@dataclass(frozen=True)
class Recurrent:
    """The base state, a GRU's state over all blocks, and optionally the mean of a hidden bank."""

    width: int = 512
    bank: HiddenBank | None = None
    """Adds the mean of these stored states; None adds nothing."""
    group: Group = HIDDEN
    needs: frozenset[Need] = frozenset({"states"})

    @property
    def name(self) -> str:
        return f"gru{self.width}" + (f"-{self.bank.choice}{self.bank.k}" if self.bank else "")

    @property
    def label(self) -> str:
        return f"Hybrid GRU + {self.bank.choice.capitalize()}{self.bank.k}" if self.bank else f"GRU{self.width}"

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        return BASE.read(point, resources)

    def represent(self, material: Material) -> Steps:
        sequences, places = material.stored()
        base = material.vectors(BASE)
        features = base if self.bank is None else np.concatenate([base, self.bank.means(material)], 1)
        return Steps(features, sequences, places, self.width)
