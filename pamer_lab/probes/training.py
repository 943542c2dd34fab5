"""Training of probes: the paper's losses, the data of a grid, settings, and windows of rows.

Does not use torch. Both losses (Appendix A.3 and B.2) are one soft-label BCE, so `soft_target` serves teacher and student in the grid;
the optima and bounds of the paper's propositions are in `tests/probes/theory.py`. Invariant: no form overflows for any finite logit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.config import Settings
from pamer_lab.probes.circle import States
from pamer_lab.probes.readout import MLP_WIDTH, Floats
from pamer_lab.probes.split import SHARES, Split

Array = npt.NDArray[Any]

KD_WEIGHT = 0.5
"""The paper's lambda; 0 turns distillation off."""


def log1pexp(z: Array) -> Array:
    """log(1 + e^z) as max(z, 0) + log(1 + e^-|z|)."""
    return np.asarray(np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))))


def weighted_bce(z: Array, y: Array, rho: float | Array) -> Array:
    """The paper's per-example loss, with weight `rho` for positives."""
    return np.asarray((rho * y + 1.0 - y) * log1pexp(z) - rho * y * z)


def soft_target(y: Array, q: Array | None, rho: float | Array, weight: float = KD_WEIGHT) -> tuple[Array, Array]:
    """(a, c) such that the loss is `a * log(1 + e^z) - c * z` and its gradient `a * sigmoid(z) - c`.

    `c / a` is the paper's soft label. Without a teacher this is the weighted BCE.
    """
    a, c = rho * y + 1.0 - y, rho * y
    return (np.asarray(a), np.asarray(c)) if q is None else (np.asarray(a + weight), np.asarray(c + weight * q))


def class_weight(y: Array) -> float:
    """`rho`: negatives per positive of a training split."""
    positives = int(np.sum(y == 1))
    return float(np.sum(y == 0)) / positives


Bools = npt.NDArray[np.bool_]


class Training(Settings):
    """How probes are trained; the defaults are the paper's."""

    epochs: int = 50
    learning_rate: float = 1e-3
    batch: int = 256
    """Average number of training rows per probe and step: windows are sized so that 70% of their rows is this number."""
    weight_decay: float = 0.01
    """The default of AdamW; the paper does not specify one."""
    width: int = MLP_WIDTH
    """Hidden units of the MLP."""
    kd_weight: float = KD_WEIGHT
    """Weight of the teacher's term; used only if there is a teacher."""
    order_seed: int = 0
    """Seed for the order of rows, which all probes share; splits and initialisation come from each probe's own seed."""


@dataclass(frozen=True)
class GridData:
    """The training data of a study's probes."""

    features: Floats | States
    """[F, n, d]: one slice per feature set, in memory or read in parts."""
    labels: Bools
    """[T, S, n]: the same for all seeds, unless labels are shuffled per seed."""
    counts: Bools
    """[T, n]: rows that count for a target."""
    splits: tuple[Split, ...]
    """One per seed."""
    teacher: Floats | None = None
    """[T, S, n] probabilities of the teacher, for distillation."""


def windows(rows: int, training: Training) -> Iterator[list[int]]:
    """For each epoch, the first row of each window, on a circle of `rows`; all windows have `window_size` rows.

    Rows are shuffled once. Each epoch cuts the circle at a new position and visits the windows in a new order; a window
    is a slice, so a step copies nothing.
    """
    size = window_size(rows, training)
    order = np.random.default_rng([training.order_seed, rows])
    for _ in range(training.epochs):
        start = int(order.integers(rows))
        yield [int((start + size * number) % rows) for number in order.permutation(-(-rows // size))]


def window_size(rows: int, training: Training) -> int:
    """Rows per window: `rows` cut into equal windows of about `batch` / 0.7."""
    return -(-rows // max(1, round(rows * SHARES[0] / training.batch)))
