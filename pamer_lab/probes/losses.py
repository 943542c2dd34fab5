"""The losses of the paper, Appendix A.3 and B.2, in their stable closed forms (numpy).

Holds the weighted BCE, the distillation loss, their gradients, their population optima and the inverse. The grid
trains with `soft_target`: both losses are one soft-label BCE, so one formula serves teacher and student.
What always holds: no form overflows for any finite logit.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

KD_WEIGHT = 0.5
"""The paper's lambda; 0 turns distillation off."""


def log1pexp(z: Array) -> Array:
    """log(1 + e^z) as max(z, 0) + log(1 + e^-|z|)."""
    return np.asarray(np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))))


def bce(z: Array, target: Array) -> Array:
    """Binary cross entropy of a logit against a hard or soft target."""
    return np.asarray(log1pexp(z) - target * z)


def weighted_bce(z: Array, y: Array, rho: float | Array) -> Array:
    """The paper's per-example loss: positives weigh `rho`."""
    return np.asarray((rho * y + 1.0 - y) * log1pexp(z) - rho * y * z)


def kd_loss(z: Array, y: Array, q: Array, rho: float | Array, weight: float = KD_WEIGHT) -> Array:
    """Weighted BCE on the label plus `weight` times BCE on the teacher's probability `q`."""
    return np.asarray(weighted_bce(z, y, rho) + weight * bce(z, q))


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


def weighted_optimum(eta: Array, rho: float) -> Array:
    """The probability that minimises the weighted BCE where positives have the rate `eta`."""
    return np.asarray(rho * eta / (1.0 - eta + rho * eta))


def weighted_inverse(p: Array, rho: float) -> Array:
    """The rate that a weighted optimum stands for."""
    return np.asarray(p / (rho - (rho - 1.0) * p))


def kd_optimum(eta: Array, mu: Array, rho: float, weight: float = KD_WEIGHT) -> Array:
    """The student's best probability where labels have the rate `eta` and the teacher the mean score `mu`."""
    return np.asarray((rho * eta + weight * mu) / (1.0 + (rho - 1.0) * eta + weight))
