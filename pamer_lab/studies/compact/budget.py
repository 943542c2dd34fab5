"""What contexts cost: the token share `B(C)` and the tokens of recalled evidence.

`B(C) = 100 * sum Tok(C_i) / sum Tok(full_i)` over the evaluated decision points. It measures offline text input, not what a
whole task would use, nor the storage of a hidden bank. Tokens include tool descriptions, and neither hint nor generation prompt.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.values import Reading


def token_share(points: Sequence[DecisionPoint], readings: Sequence[Reading], counts: Counts) -> float:
    """`B(C)` in percent."""
    read = sum(counts.context(point, reading.blocks) for point, reading in zip(points, readings, strict=True))
    return 100.0 * read / sum(counts.full(point) for point in points)


def evidence_tokens(points: Sequence[DecisionPoint], readings: Sequence[Reading], counts: Counts) -> dict[str, Any]:
    """Mean, 95th percentile and maximum of recalled tokens, over the points that have an older block to bring back."""
    sizes = [
        sum(counts.block(point, one.block) for one in reading.evidence)
        for point, reading in zip(points, readings, strict=True)
        if point.window.old
    ]
    if not sizes:
        return {"mean": 0.0, "p95": 0.0, "max": 0, "n": 0}
    return {"mean": float(np.mean(sizes)), "p95": float(np.percentile(sizes, 95)), "max": int(max(sizes)), "n": len(sizes)}
