"""Rows in a temporary file, much faster to read again than from the store; the file is deleted when it is no longer referenced."""

import tempfile

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.readout import Floats


class Scratch:
    """Rows [n, d] in the order in which they were added; one feature set that is read in parts."""

    def __init__(self, width: int, held: int) -> None:
        self._file = tempfile.TemporaryFile(prefix="pamer-lab-states-")  # noqa: SIM115
        self._width, self._rows = width, 0
        self.held = held
        """Rows that may be in memory at once."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, self._rows, self._width

    def add(self, rows: Floats) -> None:
        self._file.seek(self._rows * self._width * 4)
        self._file.write(np.ascontiguousarray(rows, dtype=np.float32).data)
        self._rows += len(rows)

    def between(self, start: int, stop: int) -> Floats:
        """Rows from `start` to before `stop`."""
        self._file.seek(start * self._width * 4)
        found = np.empty((stop - start, self._width), dtype=np.float32)
        self._file.readinto(found.data)
        return found

    def read(self, feature_set: int, rows: npt.NDArray[np.int64]) -> Floats:
        """Any rows; neighbours are read together."""
        found = np.empty((len(rows), self._width), dtype=np.float32)
        ends = [*(np.flatnonzero(np.diff(rows) != 1) + 1), len(rows)]
        start = 0
        for end in ends if len(rows) else ():
            found[start:end] = self.between(int(rows[start]), int(rows[end - 1]) + 1)
            start = end
        return found
