"""Uncertainty of a table's numbers: mean and sd over seeds, bootstrap by question, exact sign-flip p.

The bootstrap draws the corpus' questions with replacement and measures every seed's test set again with its questions weighted by how
often they were drawn; the interval is that of the mean over seeds. Rows of one question stay together, and the same call gives the same
interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.metrics import auprc, auroc, defined, f1, logit_gap

Doubles = npt.NDArray[np.float64]
METRICS = ("auroc", "auprc", "f1", "logit_gap")
RESAMPLES = 1000
LEVEL = 0.95
MOST_DIFFERENCES = 20
"""The exact test enumerates every sign pattern, a million at this number."""


@dataclass(frozen=True)
class Scored:
    """One seed's test part."""

    logits: npt.NDArray[Any]
    """[n]"""
    labels: npt.NDArray[np.bool_]
    """[n]"""
    questions: npt.NDArray[np.int64]
    """[n]: numbers of questions, the same numbers for all seeds."""
    threshold: float
    """On the logit scale."""

    def measure(self, weights: npt.NDArray[Any] | None = None) -> dict[str, Doubles]:
        """All metrics; with weights [R, n], one value per resample."""
        decided = self.logits >= self.threshold
        return {
            "auroc": auroc(self.logits, self.labels, weights),
            "auprc": auprc(self.logits, self.labels, weights),
            "f1": defined(self.logits, f1(decided, self.labels, weights)),
            "logit_gap": logit_gap(self.logits, self.labels, weights),
        }


def summarise(seeds: Sequence[Scored], resamples: int = RESAMPLES) -> dict[str, dict[str, Any]]:
    """Per metric: mean, sd (of the sample), the value of each seed, and the interval of the mean."""
    points = [scored.measure() for scored in seeds]
    drawn = _resampled(seeds, resamples)
    return {name: _summary([float(point[name]) for point in points], drawn.get(name)) for name in METRICS}


def _summary(values: list[float], drawn: Doubles | None) -> dict[str, Any]:
    return {
        "mean": float(np.mean(values)),
        "sd": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "seeds": values,
        "interval": None if drawn is None else percentiles(drawn),
    }


def percentiles(drawn: Doubles) -> list[float] | None:
    """The middle 95% of what the resamples gave; none where no resample was defined."""
    found = drawn[np.isfinite(drawn)]
    return [float(value) for value in np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])] if len(found) else None


def _resampled(seeds: Sequence[Scored], resamples: int) -> dict[str, Doubles]:
    if not resamples:
        return {}
    total = max(int(scored.questions.max()) for scored in seeds) + 1
    draws = np.random.default_rng(0).integers(total, size=(resamples, total))
    times = np.stack([np.bincount(draw, minlength=total) for draw in draws])  # [R, Q]
    measured = [scored.measure(times[:, scored.questions]) for scored in seeds]
    with np.errstate(invalid="ignore"):
        stacked = {name: np.stack([one[name] for one in measured]) for name in METRICS}  # [S, R]
    return {name: _nanmean(values) for name, values in stacked.items()}


def _nanmean(values: Doubles) -> Doubles:
    defined = np.isfinite(values)
    count = defined.sum(0)
    total = np.where(defined, values, 0.0).sum(0)
    return np.asarray(np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0))


def sign_flip(differences: Sequence[float]) -> float:
    """Exact two-sided p of the mean difference under all sign patterns; five seeds give 0.0625 at the least, NaN gives NaN."""
    if len(differences) > MOST_DIFFERENCES:
        raise ValueError(f"the exact test enumerates every sign pattern; use at most {MOST_DIFFERENCES} differences")
    values = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(values).all():
        return float("nan")
    patterns = np.array(list(product((-1.0, 1.0), repeat=len(values))))
    means = np.abs(patterns @ values) / len(values)
    observed = abs(values.sum()) / len(values)
    return float((means >= observed - 1e-12 * max(1.0, observed)).mean())
