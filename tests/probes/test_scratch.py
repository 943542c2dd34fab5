"""A scratch file gives back the rows that were written to it."""

import numpy as np

from pamer_lab.probes.scratch import Scratch


def test_any_rows_come_back_in_the_order_that_was_asked() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    scratch = Scratch(6, 7)
    for start in range(0, 50, 20):
        scratch.add(rows[start : start + 20])
    assert (scratch.shape, scratch.held) == ((1, 50, 6), 7)
    assert np.array_equal(scratch.between(18, 43), rows[18:43])
    for asked in ([], [49], [3, 4, 5, 30, 31, 9, 8, 8, 0]):
        numbers = np.array(asked, dtype=np.int64)
        assert np.array_equal(scratch.read(0, numbers), rows[numbers])
    scratch.add(rows[:2])
    assert np.array_equal(scratch.between(49, 52), rows[[49, 0, 1]])
