"""The losses of the paper, Appendix A.3 and B.2, in their stable closed forms (numpy).

Both are one soft-label BCE, so `soft_target` serves teacher and student in the grid. The optima and bounds of the paper's
propositions are in `tests/probes/theory.py`. Invariant: no form overflows for any finite logit.
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


def weighted_bce(z: Array, y: Array, rho: float | Array) -> Array:
    """The paper's per-example loss: positives weigh `rho`."""
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
