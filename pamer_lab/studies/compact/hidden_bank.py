"""Memory of hidden states: the state of prefix + last block, with the mean of some stored block states, or a GRU over all of them.

The paper does not define the base of its hidden bank; this is spec 5's reading. A block's stored state is the one it had when it was
the last block, so it costs no further pass. Where nothing older is stored yet, the base itself replaces the mean.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.readout import Floats
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.recent import Recent
from pamer_lab.studies.compact.values import HIDDEN, Columns, Group, Material, Need, Reading, Resources, Steps

Choice = Literal["uniform", "recent", "similarity"]
"""`uniform`: spread evenly over the older blocks. `recent`: the newest of them. `similarity`: nearest to the base by cosine."""

BASE = Recent(1)
"""Prefix and last block: what the model reads."""


@dataclass(frozen=True)
class HiddenBank:
    """A base state and the mean of `k` stored ones."""

    choice: Choice
    k: int
    group: Group = HIDDEN
    needs: frozenset[Need] = frozenset({"states"})

    @property
    def name(self) -> str:
        return f"bank-{self.choice}{self.k}"

    @property
    def label(self) -> str:
        return f"Hidden Bank {self.choice.capitalize()}{self.k}"

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        return BASE.read(point, resources)

    def represent(self, material: Material) -> Columns:
        return Columns(np.concatenate([material.vectors(BASE), self.means(material)], 1))

    def means(self, material: Material) -> Floats:
        """[n, d]: the mean of what is chosen at each row."""
        sequences, places = material.stored()
        base = material.vectors(BASE)
        rows = []
        for own, (sequence, length) in zip(base, places, strict=True):
            older = sequences[sequence][: length - 1]
            rows.append(older[PICKS[self.choice](own, older, self.k)].mean(0) if len(older) else own)
        return np.asarray(rows, dtype=np.float32)


@dataclass(frozen=True)
class Recurrent:
    """GRU512: the base state, a GRU's state over all blocks, and optionally the mean of a hidden bank."""

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


Picked = npt.NDArray[np.int64]


def uniform(base: Floats, older: Floats, k: int) -> Picked:
    """Evenly spread, the oldest and the newest among them."""
    return np.unique(np.linspace(0, len(older) - 1, min(k, len(older))).round().astype(np.int64))


def recent(base: Floats, older: Floats, k: int) -> Picked:
    """The newest."""
    return np.arange(max(0, len(older) - k), len(older))


def similarity(base: Floats, older: Floats, k: int) -> Picked:
    """Nearest by cosine; newer first among equals."""
    cosine = (older @ base) / np.maximum(np.linalg.norm(older, axis=1) * np.linalg.norm(base), 1e-12)
    return np.sort(np.lexsort((-np.arange(len(older)), -cosine))[:k])


PICKS: dict[Choice, Callable[[Floats, Floats, int], Picked]] = {"uniform": uniform, "recent": recent, "similarity": similarity}
