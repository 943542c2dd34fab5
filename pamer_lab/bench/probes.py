"""`bench probes`: a study's grid of probes against scikit-learn's fits of the same problems, in one run.

The features are made up but shaped like hidden states: 576 correlated columns whose spectrum falls as a power of the rank.
Both sides standardise on the training split, weight the classes, and are scored on the same test rows. scikit-learn may
iterate until it converges; with its default limit of 100 iterations it stops early on such features and warns, and that
ratio is in the details. It runs with one thread or all, whichever is faster: on two cores, waiting for each other makes
its threads many times slower than one alone.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

import numpy as np

from pamer_lab.probes.grid import train_grid
from pamer_lab.probes.metrics import auroc
from pamer_lab.probes.split import SEEDS, TEST, TRAIN, split_by_question
from pamer_lab.probes.training import GridData

HELP = "grid training of 140 probes against one scikit-learn fit each"
T = TypeVar("T")

TARGETS, SETS, ROWS, WIDTH = 2, 14, 8_000, 576
PER_QUESTION = 40
GRID_AT = (0, 7, 13)
"""The grid is timed before the fits of these feature sets, and its median counts: on a busy machine both sides see the same load."""
CARRIERS = 16
"""Directions that carry each target."""
DECAY = 1.0
"""The standard deviation of the k-th direction is `k ** -DECAY`."""


def run() -> tuple[dict[str, Any], dict[str, Any]]:
    data = make_data(SETS, ROWS)
    threads = best_threads(_Problem(data, 0, 0, 0))
    ours, theirs = _Clock(), _Clock(threads)
    limited = _Clock(threads)
    scores = np.zeros((2, SETS, TARGETS, len(SEEDS)))
    for number in range(SETS):
        if number in GRID_AT:
            grid = ours.time(lambda: train_grid(data, "linear"))
        for seed in range(len(SEEDS)):
            for target in range(TARGETS):
                problem = _Problem(data, number, target, seed)
                scores[0, number, target, seed] = problem.score(grid.logits[number, target, seed])
                scores[1, number, target, seed] = problem.score(theirs.time(lambda problem=problem: problem.fit(5_000)))  # type: ignore[misc]
                if seed == 0 and number in GRID_AT:
                    limited.time(lambda problem=problem: problem.fit(100))  # type: ignore[misc]
    grid_seconds, fits_seconds = median(ours.seconds), sum(theirs.seconds)
    few, many = _Clock(), _Clock()
    few.time(lambda: train_grid(make_data(2, ROWS), "linear"))
    many.time(lambda: train_grid(make_data(2, 2 * ROWS), "linear"))
    ratios = {"speedup_vs_sklearn": fits_seconds / grid_seconds, "auroc_difference": abs(float(scores[0].mean() - scores[1].mean()))}
    details = {
        "problems": scores[0].size,
        "rows": ROWS,
        "width": WIDTH,
        "grid_seconds": ours.seconds,
        "sklearn_seconds": fits_seconds,
        "sklearn_threads": threads or "all",
        "cpu_speedup_vs_sklearn": sum(theirs.cpu) / median(ours.cpu),
        "speedup_vs_sklearn_100_iterations": sum(limited.seconds) / len(limited.seconds) * scores[0].size / grid_seconds,
        "auroc_grid": float(scores[0].mean()),
        "auroc_sklearn": float(scores[1].mean()),
        "largest_difference_of_one_problem": float(np.abs(scores[0] - scores[1]).max()),
        "time_16000_rows_vs_linear": many.cpu[0] / (2 * few.cpu[0]),
    }
    return ratios, details


class _Clock:
    """Wall and processor seconds of calls, with an optional thread limit for numpy and scikit-learn."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    def time(self, call: Callable[[], T]) -> T:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(self.threads):
            wall, cpu = time.perf_counter(), time.process_time()
            result = call()
            self.seconds.append(time.perf_counter() - wall)
            self.cpu.append(time.process_time() - cpu)
        return result


def best_threads(problem: "_Problem") -> int | None:
    """One thread, or None for all, whichever fits a problem faster."""
    clocks = {threads: _Clock(threads) for threads in (None, 1)}
    for clock in clocks.values():
        clock.time(lambda: problem.fit(100))
    return min(clocks, key=lambda threads: clocks[threads].seconds[0])


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


@dataclass(frozen=True)
class _Problem:
    """One probe of the grid, as scikit-learn would fit it."""

    data: GridData
    number: int
    target: int
    seed: int

    def fit(self, iterations: int) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        assert isinstance(self.data.features, np.ndarray)
        features, train = self.data.features[self.number], self.data.splits[self.seed].rows(TRAIN)
        scaler = StandardScaler().fit(features[train])
        model = LogisticRegression(class_weight="balanced", max_iter=iterations)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(scaler.transform(features[train]), self.data.labels[self.target, self.seed, train])
        return model.decision_function(scaler.transform(features))

    def score(self, logits: Any) -> float:
        test = self.data.splits[self.seed].rows(TEST)
        return float(auroc(logits[test], self.data.labels[self.target, self.seed, test]))
