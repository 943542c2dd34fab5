"""Ranking and threshold metrics for many score lists at once (numpy).

Every function takes scores [..., n] and labels [n], and works along the last axis; optional weights [..., n] count a row several times or
not at all (used by the bootstrap). Ties count one half in AUROC and are one step in AUPRC; an undefined metric (one class only, a score
that is NaN) is NaN.
"""

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
    """F1 of boolean decisions; NaN where nothing is positive and nothing was called positive."""
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
    """Values [...] of scores [..., n], NaN where a score is: it has no rank and is on no side of a threshold."""
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
    """Thresholds of the best F1 on the logit scale, [..., n] -> [...]; with no positive row none is called positive.

    A row is positive at or above its threshold. Among thresholds of equal F1 the highest is taken, midway between two
    neighbouring validation logits, so that it is not the score of any single row.
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
    splits[..., :-1] = falling[..., :-1] > following[..., :-1]  # equal scores cannot be told apart
    best = np.argmax(np.where(splits, score, -1.0), -1)[..., None]
    middle = (np.take_along_axis(falling, best, -1) + np.take_along_axis(following, best, -1))[..., 0] / 2.0
    return np.asarray(np.where(true.sum(-1) > 0, middle, falling[..., 0] + 1.0))
