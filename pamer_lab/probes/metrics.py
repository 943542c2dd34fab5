"""Ranking and threshold metrics for many score lists at once, and their uncertainty: sd, bootstrap, sign-flip p, Wilson.

Every metric takes scores [..., n] and labels [n] and works along the last axis; optional weights [..., n] count a row several times or not
at all. Ties count one half in AUROC and are one step in AUPRC; an undefined metric is NaN. The bootstrap draws the corpus' questions with
replacement and re-evaluates every seed's test set with questions weighted by how often they were drawn; the interval is that of the mean
over seeds. Rows of one question stay together, and the interval is deterministic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]


def auroc(scores: Array, labels: Array, weights: Array | None = None) -> Doubles:
    """The share of positive-negative pairs that are in the right order; ties count one half."""
    ranked = _Ranked(scores, labels, weights)
    below = ranked.before(ranked.negative)
    tied = ranked.until(ranked.negative) - below
    pairs = _ratio((ranked.positive * (below + 0.5 * tied)).sum(-1), ranked.positive.sum(-1) * ranked.negative.sum(-1))
    return defined(scores, pairs)


def auprc(scores: Array, labels: Array, weights: Array | None = None) -> Doubles:
    """Average precision: each positive adds the precision at its score, equal scores being one step."""
    ranked = _Ranked(-np.asarray(scores, dtype=np.float64), labels, weights)
    hits, shown = ranked.until(ranked.positive), ranked.until(ranked.positive + ranked.negative)
    precision = np.divide(hits, shown, out=np.zeros_like(hits), where=shown > 0)
    return defined(scores, _ratio((ranked.positive * precision).sum(-1), ranked.positive.sum(-1)))


def f1(decisions: Array, labels: Array, weights: Array | None = None) -> Doubles:
    """F1 of boolean decisions; NaN if nothing is positive and nothing was predicted positive."""
    weight = np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64)
    decided, true = np.asarray(decisions, dtype=bool), np.asarray(labels, dtype=bool)
    hits = (weight * (decided & true)).sum(-1)
    wrong = (weight * (decided ^ true)).sum(-1)
    return _ratio(2.0 * hits, 2.0 * hits + wrong)


def logit_gap(logits: Array, labels: Array, weights: Array | None = None) -> Doubles:
    """Mean logit of positives minus mean logit of negatives; depends on the probe's scale."""
    weight = np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64)
    positive, negative = (weight * np.asarray(labels == value, dtype=np.float64) for value in (True, False))
    wide = np.asarray(logits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(_ratio((wide * positive).sum(-1), positive.sum(-1)) - _ratio((wide * negative).sum(-1), negative.sum(-1)))


def defined(scores: Array, values: Array) -> Doubles:
    """Metric values [...] of scores [..., n], set to NaN if any score is NaN: it has no rank and no side of a threshold."""
    return np.asarray(np.where(np.isnan(np.asarray(scores, dtype=np.float64)).any(-1), np.nan, values))


class _Ranked:
    """Rows in ascending order of score, with the bounds of each group of equal scores."""

    def __init__(self, scores: Array, labels: Array, weights: Array | None) -> None:
        wide = np.asarray(scores, dtype=np.float64)
        order = np.argsort(wide, axis=-1, kind="stable")
        ordered = np.take_along_axis(wide, order, -1)
        true = np.asarray(labels, dtype=bool)[order]
        if weights is None:
            self.positive, self.negative = true.astype(np.float64), (~true).astype(np.float64)
        else:
            weight = np.asarray(weights, dtype=np.float64)
            order, true = (np.broadcast_to(part, np.broadcast_shapes(part.shape, weight.shape)) for part in (order, true))
            weight = np.take_along_axis(np.broadcast_to(weight, order.shape), order, -1)
            self.positive, self.negative = weight * true, weight * ~true
        count = wide.shape[-1]
        place = np.arange(count)
        new = np.ones(ordered.shape, dtype=bool)
        new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
        self._start = np.maximum.accumulate(np.where(new, place, 0), -1)
        last = np.ones(ordered.shape, dtype=bool)
        last[..., :-1] = new[..., 1:]
        self._end = np.minimum.accumulate(np.where(last, place, count)[..., ::-1], -1)[..., ::-1]

    def before(self, mass: Doubles) -> Doubles:
        """Per row the mass at strictly lower scores."""
        total = np.cumsum(mass, -1) - mass
        return np.take_along_axis(total, np.broadcast_to(self._start, total.shape), -1)

    def until(self, mass: Doubles) -> Doubles:
        """Per row the mass at lower or equal scores."""
        total = np.cumsum(mass, -1)
        return np.take_along_axis(total, np.broadcast_to(self._end, total.shape), -1)


def _ratio(top: Array, bottom: Array) -> Doubles:
    top, bottom = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0))


def best_thresholds(logits: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Thresholds with the best F1 on the logit scale, [..., n] -> [...]; without positive rows, nothing is predicted positive.

    A row is predicted positive at or above the threshold. Among thresholds with equal F1 the highest is taken, midway between two
    adjacent logits, so that it does not coincide with the score of a row.
    """
    wide = np.asarray(logits, dtype=np.float64)
    order = np.argsort(-wide, axis=-1, kind="stable")
    falling = np.take_along_axis(wide, order, -1)
    true = np.asarray(labels, dtype=np.float64)[order]
    hits = np.cumsum(true, -1)
    called = np.arange(1, wide.shape[-1] + 1)
    score = 2.0 * hits / (called + true.sum(-1, keepdims=True))
    following = np.concatenate([falling[..., 1:], falling[..., -1:]], -1)
    splits = np.ones(falling.shape, dtype=bool)
    splits[..., :-1] = falling[..., :-1] > following[..., :-1]  # no threshold can separate equal scores
    best = np.argmax(np.where(splits, score, -1.0), -1)[..., None]
    middle = (np.take_along_axis(falling, best, -1) + np.take_along_axis(following, best, -1))[..., 0] / 2.0
    return np.asarray(np.where(true.sum(-1) > 0, middle, falling[..., 0] + 1.0))


METRICS = ("auroc", "auprc", "f1", "logit_gap")
RESAMPLES = 1000
LEVEL = 0.95
MOST_DIFFERENCES = 20
"""Maximum for which the sign-flip test enumerates every sign pattern: a million for 20 differences."""
UNITS = 200_000
"""More differences are rounded to this fraction of their total size, unless they are whole numbers with a smaller total."""
Z = 1.959964
"""Quantile of the normal distribution for a 95 % interval."""


@dataclass(frozen=True)
class Scored:
    """One seed's test part."""

    logits: npt.NDArray[Any]
    """[n]"""
    labels: npt.NDArray[np.bool_]
    """[n]"""
    questions: npt.NDArray[np.int64]
    """[n]: question numbers, shared by all seeds."""
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
    """The central 95% of the resampled values; None if no value is finite."""
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


def sign_flip(differences: Sequence[float] | Doubles) -> float:
    """Two-sided p of the mean difference under all sign patterns; at least 0.0625 for five seeds; NaN gives NaN."""
    values = np.asarray(differences, dtype=np.float64)
    if not np.isfinite(values).all():
        return float("nan")
    if len(values) > MOST_DIFFERENCES:
        return _sign_flip_of_many(values)
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    means, observed = np.abs(sums) / len(values), abs(values.sum()) / len(values)
    return float((means >= observed - 1e-12 * max(1.0, observed)).mean())


def _sign_flip_of_many(differences: Doubles) -> float:
    """The same from the distribution of the sum, which is built up difference by difference."""
    sizes = np.abs(differences)
    unit = 1.0 if np.array_equal(sizes, np.round(sizes)) and sizes.sum() <= UNITS else sizes.sum() / UNITS
    whole = np.round(differences / unit).astype(np.int64)
    total = int(np.abs(whole).sum())
    chance = np.zeros(total + 1)  # probability of each sum of the differences with a plus sign
    chance[0] = 1.0
    for size in np.abs(whole[whole != 0]):
        shifted = np.zeros_like(chance)
        shifted[size:] = chance[: total + 1 - size]
        chance = 0.5 * (chance + shifted)
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(chance[sums >= abs(int(whole.sum()))].sum()))


def wilson(hits: float, count: int) -> list[float]:
    """Wilson's 95 % interval of a rate."""
    rate, z2 = hits / count, Z * Z
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    half = Z * float(np.sqrt(rate * (1 - rate) / count + z2 / (4 * count * count))) / (1 + z2 / count)
    return [max(0.0, middle - half), min(1.0, middle + half)]
