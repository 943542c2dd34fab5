"""Rows that are read in parts are the rows in memory, whatever is done with them, and few are read at a time."""

import numpy as np
import pytest

from pamer_lab.probes.scratch import Scratch
from pamer_lab.studies.compact.rows import Rows, at_hand, beside, held, means, parts, read, slices, statistics, taken
from tests.probes.test_circle import Elsewhere

COUNT, HELD = 40, 7


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(COUNT, 5)).astype(np.float32)


def test_neighbours_are_grouped_up_to_a_sum_and_a_larger_item_stays_alone() -> None:
    assert [(own.start, own.stop) for own in slices([2, 2, 1, 9, 3, 3], 5)] == [(0, 3), (3, 4), (4, 5), (5, 6)]
    assert list(slices([], 5)) == []


def test_rows_in_parts_are_those_in_memory_bit_for_bit(rows: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    order, scalars = rng.permutation(COUNT), rng.normal(size=(COUNT, 2)).astype(np.float32)
    picks = [rng.choice(COUNT, size=size, replace=False) for size in rng.integers(1, 2 * HELD, size=COUNT)]
    elsewhere = Elsewhere(rows[None], HELD)

    def made(base: Rows) -> list[Rows]:
        joined = beside(taken(base, order), means(base, picks))
        return [taken(base, order), beside(base, scalars), joined, at_hand(joined)]

    for streamed, whole in zip(made(elsewhere), made(rows), strict=True):
        assert isinstance(whole, np.ndarray) and not isinstance(streamed, np.ndarray)
        assert streamed.shape == (1, *whole.shape)
        assert np.array_equal(np.concatenate(list(parts(streamed))), whole)
        assert np.array_equal(read(streamed, np.array([9, 3, 30])), whole[[9, 3, 30]])
    # Rows of 5 numbers; of 5 and 2; of 5 and 5, where rows to be averaged need room of their own.
    assert [held(streamed) for streamed in made(elsewhere)] == [HELD, HELD * 5 // 7, HELD // 2 * 5 // 10, HELD // 2 * 5 // 10]
    assert isinstance(at_hand(elsewhere), Scratch)
    assert max(elsewhere.reads) <= max(HELD, *map(len, picks))


def test_statistics_in_two_passes_are_those_of_numpy(rows: np.ndarray) -> None:
    rows[:, 2] = 4.0
    asked = np.arange(3, 33)
    whole = statistics(rows, asked)
    assert np.array_equal(whole[0], rows[asked].mean(0, dtype=np.float64).astype(np.float32))
    assert np.array_equal(np.delete(whole[1], 2), np.delete(rows[asked].std(0, dtype=np.float64).astype(np.float32), 2))
    assert whole[1][2] == 1.0
    for ours, theirs in zip(statistics(Elsewhere(rows[None], HELD), asked), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
