"""Memory of hidden states: the state of prefix + last block, plus the mean of some stored block states or a GRU over all of them.

The paper does not define the base of its hidden bank; this is spec 5's interpretation. A block's stored state is the one it had as the
last block, so it needs no extra pass. If nothing older is stored yet, the base itself replaces the mean.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.readout import Floats
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.recent import Recent
from pamer_lab.studies.compact.rows import Rows, beside, held, means, read, slices
from pamer_lab.studies.compact.values import HIDDEN, Blocks, Columns, Group, Material, Need, Reading, Resources, Steps

Choice = Literal["uniform", "recent", "similarity"]
"""`uniform`: spread evenly over the older blocks. `recent`: the newest of them. `similarity`: those nearest to the base by cosine."""

BASE = Recent(1)
"""Prefix and last block: what the model reads."""
Picked = npt.NDArray[np.int64]


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
        return Columns(self.extend(material.vectors(BASE), material.stored()))

    def extend(self, base: Rows, blocks: Blocks) -> Rows:
        """[n, 2 d]: each row's base state, and the mean of the states chosen at that row."""
        return beside(base, means(blocks.states, self._picked(blocks)))

    def _picked(self, blocks: Blocks) -> list[Picked]:
        """Numbers of the chosen blocks, row by row; if there is no older block, the newest one, whose state is the base."""
        picked: list[Picked] = [np.arange(0)] * len(blocks.places)
        trace_of, before = blocks.places.T
        for some in slices(np.diff(blocks.starts).tolist(), held(blocks.states)):
            first, end = blocks.starts[[some.start, some.stop]]
            states = read(blocks.states, np.arange(first, end))
            for row in np.flatnonzero((some.start <= trace_of) & (trace_of < some.stop)):
                start = blocks.starts[trace_of[row]]
                seen = states[start - first :][: before[row]]
                picked[row] = start + (PICKS[self.choice](seen[-1], seen[:-1], self.k) if len(seen) > 1 else np.arange(1))
        return picked


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
        base, blocks = material.vectors(BASE), material.stored()
        return Steps(base if self.bank is None else self.bank.extend(base, blocks), blocks, self.width)


def uniform(base: Floats, older: Floats, k: int) -> Picked:
    """Evenly spread, the oldest and the newest among them."""
    return np.unique(np.linspace(0, len(older) - 1, min(k, len(older))).round().astype(np.int64))


def recent(base: Floats, older: Floats, k: int) -> Picked:
    """The newest."""
    return np.arange(max(0, len(older) - k), len(older))


def similarity(base: Floats, older: Floats, k: int) -> Picked:
    """The nearest by cosine; ties go to the newer block."""
    cosine = (older @ base) / np.maximum(np.linalg.norm(older, axis=1) * np.linalg.norm(base), 1e-12)
    return np.sort(np.lexsort((-np.arange(len(older)), -cosine))[:k])


PICKS: dict[Choice, Callable[[Floats, Floats, int], Picked]] = {"uniform": uniform, "recent": recent, "similarity": similarity}
