"""Closed forms of the paper's propositions (Appendix A.3, B.2, B.3 and C.2) that only its claims need.

Training uses `losses.soft_target`, the controller `stability.vote_margins`; the tests compare those with the forms below.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.training import KD_WEIGHT, log1pexp, weighted_bce

Array = npt.NDArray[Any]


def bce(z: Array, target: Array) -> Array:
    """Binary cross entropy of a logit against a hard or soft target."""
    return np.asarray(log1pexp(z) - target * z)


def kd_loss(z: Array, y: Array, q: Array, rho: float | Array, weight: float = KD_WEIGHT) -> Array:
    """Weighted BCE on the label plus `weight` times BCE on the teacher's probability `q`."""
    return np.asarray(weighted_bce(z, y, rho) + weight * bce(z, q))


def weighted_optimum(eta: Array, rho: float) -> Array:
    """The probability that minimises the weighted BCE where positives have the rate `eta`."""
    return np.asarray(rho * eta / (1.0 - eta + rho * eta))


def weighted_inverse(p: Array, rho: float) -> Array:
    """The rate behind a weighted optimum."""
    return np.asarray(p / (rho - (rho - 1.0) * p))


def kd_optimum(eta: Array, mu: Array, rho: float, weight: float = KD_WEIGHT) -> Array:
    """The student's best probability where labels have the rate `eta` and the teacher the mean score `mu`."""
    return np.asarray((rho * eta + weight * mu) / (1.0 + (rho - 1.0) * eta + weight))


@dataclass(frozen=True)
class RetrievalMargin:
    """The gap between the last entry taken and the first left out."""

    margin: float
    """Infinite where every entry was taken."""

    @property
    def safe_shift(self) -> float:
        """If every score moves by less than this, the same set is taken."""
        return self.margin / 2.0


def retrieval_margin(scores: Array | Sequence[float], k: int) -> RetrievalMargin:
    """The score margin at the cut of a top-k retrieval."""
    falling = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
    return RetrievalMargin(float(falling[k - 1] - falling[k]) if 0 < k < len(falling) else float("inf"))


def disagreement_bound(logits: Array, threshold_logit: float, shift: float) -> float:
    """At most this share of decisions differs when no logit moves by more than `shift`."""
    return float((np.abs(np.asarray(logits, dtype=np.float64) - threshold_logit) <= shift).mean())


def auroc_bound(logits: Array, labels: Array, shift: float) -> float:
    """AUROC moves by at most this when no logit moves by more than `shift`."""
    wide, true = np.asarray(logits, dtype=np.float64), np.asarray(labels, dtype=bool)
    gaps = np.abs(wide[true][:, None] - wide[~true][None, :])
    return float((gaps <= 2.0 * shift).mean())
