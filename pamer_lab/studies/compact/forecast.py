"""What a study takes, said before it starts and checked when it is done; and what its contexts cost: the token share `B(C)`.

`B(C) = 100 * sum Tok(C_i) / sum Tok(full_i)` over the evaluated decision points. It measures offline text input, not what a complete
task would use, nor the storage of a hidden bank. Tokens include tool descriptions, and neither hint nor generation prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pamer_lab.features.pace import loaded_pace
from pamer_lab.features.values import Estimate
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.values import Reading


@dataclass(frozen=True)
class Forecast:
    """What is to be computed, and at which speed."""

    inputs: int
    """Different texts."""
    cached: int
    """Of them those whose states are there already."""
    tokens: int
    """Tokens to compute, shared beginnings once."""
    tokens_naive: int
    """Tokens of one forward pass per missing text."""
    seconds: float
    """At the pace of this machine with this model, measured before or just now (`features/pace.py`)."""

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.tokens else 0.0

    @property
    def sentence(self) -> str:
        return (
            f"estimate: {self.tokens:,} tokens to compute for {self.inputs - self.cached:,} of {self.inputs:,} texts "
            f"({self.tokens_naive:,} one by one; {self.cached:,} texts are in the workspace), about {self.seconds / 60:.1f} min "
            f"at {self.tokens_per_second:,.0f} tokens/s"
        )

    def check(self, tokens: float, seconds: float) -> dict[str, Any]:
        """Estimate and truth side by side."""
        return {
            "texts": self.inputs,
            "texts_in_workspace": self.cached,
            "tokens_one_by_one": self.tokens_naive,
            "tokens_estimated": self.tokens,
            "tokens_computed": int(tokens),
            "seconds_estimated": round(self.seconds, 1),
            "seconds_taken": round(seconds, 1),
            "tokens_per_second_estimated": round(self.tokens_per_second, 1),
        }


def forecast(parts: list[Estimate], model: FrozenModel, folder: Path | None) -> Forecast:
    """One forecast for several extractions that follow each other; `folder`: the workspace."""
    tokens = sum(part.tokens for part in parts)
    passes = sum(part.tokens * part.depth for part in parts)
    return Forecast(
        inputs=sum(part.inputs for part in parts),
        cached=sum(part.cached for part in parts),
        tokens=tokens,
        tokens_naive=sum(part.tokens_naive for part in parts),
        seconds=passes / loaded_pace(model, folder, max(part.depth for part in parts)) if tokens else 0.0,
    )


def check_sentence(checked: dict[str, Any]) -> str:
    """The check in words."""
    return (
        f"computed {checked['tokens_computed']:,} tokens ({checked['tokens_estimated']:,} estimated) "
        f"in {checked['seconds_taken'] / 60:.1f} min ({checked['seconds_estimated'] / 60:.1f} estimated)"
    )


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
