"""Probes whose rows are read in parts are the probes whose rows are in memory, and few rows are in memory at a time."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from pamer_lab.errors import ProbeError
from pamer_lab.probes import circle
from pamer_lab.probes.grid import train_grid
from pamer_lab.probes.training import Training, window_size
from tests.probes.test_grid import ROWS, study


@dataclass
class Elsewhere:
    """Feature sets that count the rows of each read."""

    features: np.ndarray
    held: int
    reads: list[int] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int, int]:
        sets, rows, width = self.features.shape
        return sets, rows, width

    def read(self, feature_set: int, rows: np.ndarray) -> np.ndarray:
        self.reads.append(len(rows))
        return self.features[feature_set][rows]


@pytest.mark.parametrize(("capacity", "teacher", "held"), [("linear", False, 1), ("linear", True, 97), ("mlp", True, 64)])
def test_streamed_probes_are_those_trained_in_memory(capacity: str, teacher: bool, held: int) -> None:
    data, training = study(teacher=teacher, sets=2), Training(epochs=4, width=8, learning_rate=5e-3)
    alone = train_grid(data, capacity, training)
    streamed = train_grid(replace(data, features=Elsewhere(data.features, held)), capacity, training)
    assert np.array_equal(streamed.epochs, alone.epochs)
    np.testing.assert_allclose(streamed.logits, alone.logits, atol=1e-3)
    np.testing.assert_allclose(streamed.losses, alone.losses, atol=1e-4)
    for ours, theirs in zip(streamed.parameters, alone.parameters, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.mean, other.mean, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(one.scale, other.scale, rtol=1e-4)
            np.testing.assert_allclose(one.weight, other.weight, atol=1e-4)


def test_no_more_rows_are_in_memory_than_the_setting_or_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    data, training = study(sets=1), Training(epochs=2, batch=16)
    states, slices = Elsewhere(data.features, 40), []
    whole = circle.FileCircle._slice

    def counted(self: circle.FileCircle, start: int, stop: int) -> np.ndarray:
        slices.append(stop - start)
        return whole(self, start, stop)

    monkeypatch.setattr(circle.FileCircle, "_slice", counted)
    train_grid(replace(data, features=states), "linear", training)
    assert max(states.reads) == 40 and sum(states.reads) >= ROWS
    assert 0 < max(slices) <= max(40, window_size(ROWS, training))


def test_a_streamed_row_that_is_not_finite_is_named() -> None:
    data = study(sets=2)
    features = data.features.copy()
    features[1, 33, 2] = np.inf
    with pytest.raises(ProbeError, match=r"feature set 1 .* row 33 "):
        train_grid(replace(data, features=Elsewhere(features, 50)), "linear", Training(epochs=1))
