"""The grid trains each probe exactly as one would train it alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pamer_lab.errors import ProbeError
from pamer_lab.probes.grid import train_grid
from pamer_lab.probes.metrics import auroc
from pamer_lab.probes.split import TEST, TRAIN, VALIDATION, split_by_question
from pamer_lab.probes.training import GridData, Training, weighted_bce, window_size, windows
from tests.studies.small_study import train_alone

ROWS, WIDTH = 700, 10


def study(*, teacher: bool = False, sets: int = 3) -> GridData:
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(sets, ROWS, WIDTH)) * rng.uniform(0.1, 30, size=WIDTH) + rng.normal(size=WIDTH) * 100).astype(np.float32)
    score = ((features - features.mean(1, keepdims=True)) / features.std(1, keepdims=True))[0, :, :2].T
    labels = rng.random((2, ROWS)) < 1 / (1 + np.exp(1 - 1.5 * score))
    counts = np.stack([np.ones(ROWS, dtype=bool), np.arange(ROWS) % 5 != 0])
    splits = tuple(split_by_question([f"q{row // 10}" for row in range(ROWS)], seed) for seed in (0, 3))
    given = rng.random((2, 2, ROWS)).astype(np.float32) if teacher else None
    return GridData(features, np.repeat(labels[:, None], 2, 1), counts, splits, given)


@pytest.mark.parametrize("capacity", ["linear", "mlp"])
@pytest.mark.parametrize("teacher", [False, True])
def test_a_probe_of_the_grid_is_the_probe_trained_alone(capacity: str, teacher: bool) -> None:
    data, training = study(teacher=teacher), Training(epochs=12, learning_rate=5e-3, width=16)
    grid = train_grid(data, capacity, training)
    for chosen, target, seed in ((0, 0, 0), (1, 1, 1), (2, 0, 1)):
        logits, epoch = train_alone(data, target, seed, capacity, training, chosen)
        assert np.abs(grid.logits[chosen, target, seed] - logits).max() < 2e-3
        assert grid.epochs[chosen, target, seed] == epoch


def test_the_kept_heads_give_the_grids_logits() -> None:
    data = study()
    grid = train_grid(data, "mlp", Training(epochs=3))
    for chosen in range(3):
        for target in range(2):
            own = grid.parameters[chosen][target].logits(data.features[chosen])  # [n, S]
            assert np.abs(own.T - grid.logits[chosen, target]).max() < 2e-3


def test_test_rows_and_uncounted_rows_leave_no_trace_in_the_weights() -> None:
    data, training = study(), Training(epochs=4)
    before = train_grid(data, "linear", training).parameters[0][1]
    split = data.splits[0]
    hidden = (split.part == TEST) | ~data.counts[1]
    flipped = data.labels.copy()
    flipped[1, 0, hidden] = ~flipped[1, 0, hidden]
    after = train_grid(GridData(data.features, flipped, data.counts, data.splits), "linear", training).parameters[0][1]
    assert np.array_equal(before.weight[0], after.weight[0])


def test_the_kept_epoch_has_the_least_validation_label_loss() -> None:
    """With the teacher pulling elsewhere, the checkpoint still follows the labels."""
    data = study(teacher=True)
    grid = train_grid(data, "linear", Training(epochs=20, learning_rate=2e-2))
    split, counts = data.splits[1], data.counts[0]
    valid, train = split.rows(VALIDATION) & counts, split.rows(TRAIN) & counts
    y = data.labels[0, 1].astype(float)
    rho = (1 - y[train]).sum() / y[train].sum()
    loss = weighted_bce(grid.logits[0, 0, 1][valid].astype(float), y[valid], rho).mean()
    assert loss == pytest.approx(grid.losses[0, 0, 1], rel=1e-4)


def test_the_windows_of_an_epoch_cover_every_row() -> None:
    for rows in (5, 300, 366, 1400, 8000):
        training = Training(epochs=3)
        size = window_size(rows, training)
        for starts in windows(rows, training):
            seen = {place % rows for start in starts for place in range(start, start + size)}
            assert seen == set(range(rows))
    assert window_size(8000, Training()) == pytest.approx(256 / 0.7, rel=0.02)


def test_probes_learn_what_is_there_and_nothing_from_shuffled_labels() -> None:
    data = study()
    shuffled = np.random.default_rng(1).permuted(data.labels, axis=-1)
    test = data.splits[0].rows(TEST)
    real = train_grid(data, "linear", Training(learning_rate=1e-2)).logits[0, 0, 0]
    noise = train_grid(GridData(data.features, shuffled, data.counts, data.splits), "linear").logits[0, 0, 0]
    assert auroc(real[test], data.labels[0, 0, test]) > 0.75
    assert abs(auroc(noise[test], shuffled[0, 0, test]) - 0.5) < 0.2


def test_features_that_are_not_finite_are_refused_by_set_and_row() -> None:
    data = study()
    for wrong in (np.nan, np.inf):
        features = data.features.copy()
        features[1, 17, 3] = wrong
        with pytest.raises(ProbeError, match=r"\b1\b.*NaN.*\b17\b"):
            train_grid(GridData(features, data.labels, data.counts, data.splits), "linear")


def test_training_imports_neither_torchs_compiler_nor_a_computer_algebra_system() -> None:
    """They take seconds, which a small study would pay on its first step."""
    program = (
        "import sys, numpy as np; from pamer_lab.probes.grid import *; from pamer_lab.probes.split import split_by_question;"
        "rng = np.random.default_rng(0); x = rng.normal(size=(1, 80, 4)).astype('float32'); y = rng.random((1, 1, 80)) < 0.5;"
        "splits = (split_by_question([f'q{row // 4}' for row in range(80)], 0),);"
        "train_grid(GridData(x, y, np.ones((1, 80), bool), splits), 'mlp', Training(epochs=2, width=4));"
        "sys.exit(' '.join({'sympy', 'torch._dynamo'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).resolve().parents[2])
    assert done.returncode == 0, done.stderr
