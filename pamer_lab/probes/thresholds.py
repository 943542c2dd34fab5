"""A probe's threshold: the one with the best validation F1, then fixed.

What always holds: a row is positive at or above its threshold; the choice depends on validation rows alone. Among
thresholds of equal F1 the highest is taken, and it stands midway between two neighbouring validation logits, so that it is
not the score of any single row.
"""

from typing import Any

import numpy as np
import numpy.typing as npt


def best_thresholds(logits: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Thresholds on the logit scale, [..., n] -> [...]; with no positive row none is called positive."""
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
