"""States that stay in the store and are read a bounded number of rows at a time, one column (layer and pooling) after another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import ProbeError
from pamer_lab.features.store import FeatureStore, Vectors

COPIES = 4
"""Times that a row is in memory while it is read and standardised: Arrow, numpy, in order, in the units of training."""


@dataclass(frozen=True)
class StoredStates:
    """Feature sets [columns, keys, width]."""

    store: FeatureStore
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    memory: int
    """Bytes that rows may take in memory."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.columns), len(self.keys), self.store.width

    @property
    def held(self) -> int:
        """Rows that are read at once."""
        return max(1, self.memory // (COPIES * 4 * self.store.width))

    def read(self, feature_set: int, rows: npt.NDArray[np.int64]) -> Vectors:
        """Some rows of one column, [r, width]."""
        asked = [self.keys[row] for row in rows]
        found, vectors = self.store.read(asked, [self.columns[feature_set]])
        place = {key: number for number, key in enumerate(found)}
        if missing := [key for key in asked if key not in place]:
            raise ProbeError(f"{len(missing)} states of {self.columns[feature_set]} are no longer in the store; run the command again")
        ordered: Vectors = vectors[[place[key] for key in asked], 0]
        return ordered

    def only(self, columns: Sequence[str]) -> "StoredStates":
        """The same rows of some columns."""
        return StoredStates(self.store, self.keys, tuple(columns), self.memory)
