"""`bench probes`: a study's grid of probes against scikit-learn's fits of the same problems, in one run.

The features are made up but shaped like hidden states: 576 correlated columns whose spectrum falls as a power of the rank.
Both sides standardise on the training split, weigh the classes, and are scored on the same test rows. scikit-learn may
iterate until it has converged; with its default limit of 100 iterations it stops early on such features and warns, and
that ratio is given among the details.
"""

import time
import warnings
from typing import Any

import numpy as np

from pamer_lab.probes.grid import GridData, train_grid
from pamer_lab.probes.metrics import auroc
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.split import SEEDS, TEST, TRAIN, split_by_question

HELP = "grid training of 140 probes against one scikit-learn fit each"
TARGETS, SETS, ROWS, WIDTH = 2, 14, 8_000, 576
PER_QUESTION = 40
CARRIERS = 16
"""Directions that carry each target."""
DECAY = 1.0
"""Standard deviation of the k-th direction is k to the power of minus this."""


def run() -> tuple[dict[str, Any], dict[str, Any]]:
    data = make_data(SETS, ROWS)
    started = time.perf_counter()
    ours = train_grid(data, "linear")
    grid_seconds = time.perf_counter() - started
    fits_seconds, default_seconds, theirs = _scikit(data)
    own = np.array(
        [
            [
                [_test_auroc(data, target, seed, ours.logits[number, target, seed]) for seed in range(len(SEEDS))]
                for target in range(TARGETS)
            ]
            for number in range(SETS)
        ]
    )
    half, whole = (_seconds(make_data(2, rows)) for rows in (ROWS, 2 * ROWS))
    ratios = {"speedup_vs_sklearn": fits_seconds / grid_seconds, "auroc_difference": abs(float(own.mean() - theirs.mean()))}
    details = {
        "problems": own.size,
        "rows": ROWS,
        "width": WIDTH,
        "grid_seconds": grid_seconds,
        "sklearn_seconds": fits_seconds,
        "speedup_vs_sklearn_100_iterations": default_seconds / grid_seconds,
        "auroc_grid": float(own.mean()),
        "auroc_sklearn": float(theirs.mean()),
        "largest_difference_of_one_problem": float(np.abs(own - theirs).max()),
        "time_16000_rows_vs_linear": whole / (2 * half),
    }
    return ratios, details


def make_data(sets: int, rows: int) -> GridData:
    """Feature sets that carry two targets, each set a little more or less clearly."""
    rng = np.random.default_rng(0)
    spectrum = np.arange(1, WIDTH + 1, dtype=np.float32) ** -DECAY
    latent = rng.normal(size=(rows, TARGETS)).astype(np.float32)
    labels = rng.random((TARGETS, rows)) < 1 / (1 + np.exp(1.5 - 8.0 * latent.T))
    features = np.empty((sets, rows, WIDTH), dtype=np.float32)
    for number in range(sets):
        basis = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0].astype(np.float32)
        inner = rng.normal(size=(rows, WIDTH)).astype(np.float32)
        inner[:, : CARRIERS * TARGETS] += np.repeat(latent, CARRIERS, 1) * (0.8 + 0.03 * number)
        features[number] = (inner * spectrum) @ basis
    splits = tuple(split_by_question([f"q{row // PER_QUESTION}" for row in range(rows)], seed) for seed in SEEDS)
    return GridData(features, np.repeat(labels[:, None], len(SEEDS), 1), np.ones((TARGETS, rows), dtype=bool), splits)


def _scikit(data: GridData) -> tuple[float, float, Floats]:
    """Seconds until convergence, an estimate of the seconds with the default limit, and test AUROC [F, T, S]."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scores = np.zeros((len(data.features), TARGETS, len(SEEDS)), dtype=np.float32)
    seconds, limited, tried = 0.0, 0.0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, features in enumerate(data.features):
            for seed, split in enumerate(data.splits):
                for target in range(TARGETS):
                    started = time.perf_counter()
                    train, y = split.rows(TRAIN), data.labels[target, seed]
                    scaler = StandardScaler().fit(features[train])
                    model = LogisticRegression(class_weight="balanced", max_iter=5_000).fit(scaler.transform(features[train]), y[train])
                    logits = model.decision_function(scaler.transform(features))
                    seconds += time.perf_counter() - started
                    scores[number, target, seed] = _test_auroc(data, target, seed, logits)
                    if number == seed == 0:
                        started = time.perf_counter()
                        scaled = StandardScaler().fit(features[train]).transform(features)
                        LogisticRegression(class_weight="balanced").fit(scaled[train], y[train]).decision_function(scaled)
                        limited += time.perf_counter() - started
                        tried += 1
    return seconds, limited / tried * scores.size, scores


def _test_auroc(data: GridData, target: int, seed: int, logits: Any) -> float:
    test = data.splits[seed].rows(TEST)
    return float(auroc(logits[test], data.labels[target, seed, test]))


def _seconds(data: GridData) -> float:
    started = time.perf_counter()
    train_grid(data, "linear")
    return time.perf_counter() - started
