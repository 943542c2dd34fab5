"""How far a decision is from flipping (Appendix B.3 and C.2 of the paper).

Knows logits, thresholds and retrieval scores. What always holds: a perturbation smaller than the margin returned here
changes nothing, and one a little larger can.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class VoteMargins:
    """Margins of one decision, all on the logit scale."""

    heads: tuple[float, ...]
    """Per head, the smallest shift of its logit that flips its vote."""
    vote: float
    """The smallest shift that flips any one vote."""
    majority: float
    """The smallest bound on all shifts under which the majority can flip; infinite where no shift can."""
    yes: int
    """How many heads say yes."""


def vote_margins(
    logits: npt.NDArray[Any] | Sequence[float], threshold_logits: npt.NDArray[Any] | Sequence[float], needed: int = 3
) -> VoteMargins:
    """Margins of a vote in which `needed` heads must say yes."""
    distance = np.asarray(logits, dtype=np.float64) - np.asarray(threshold_logits, dtype=np.float64)
    says_yes = distance >= 0
    yes = int(says_yes.sum())
    agreeing = np.sort(np.abs(distance[says_yes if yes >= needed else ~says_yes]))
    flips = yes - needed + 1 if yes >= needed else needed - yes
    majority = float(agreeing[flips - 1]) if 1 <= flips <= len(agreeing) else float("inf")
    heads = tuple(float(value) for value in np.abs(distance))
    return VoteMargins(heads, min(heads), majority, yes)


@dataclass(frozen=True)
class RetrievalMargin:
    """The gap between the last entry taken and the first left out."""

    margin: float
    """Infinite where every entry was taken."""

    @property
    def safe_shift(self) -> float:
        """If every score moves by less than this, the same set is taken."""
        return self.margin / 2.0


def retrieval_margin(scores: npt.NDArray[Any] | Sequence[float], k: int) -> RetrievalMargin:
    """The score margin at the cut of a top-k retrieval."""
    falling = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
    return RetrievalMargin(float(falling[k - 1] - falling[k]) if 0 < k < len(falling) else float("inf"))


def disagreement_bound(logits: npt.NDArray[Any], threshold_logit: float, shift: float) -> float:
    """At most this share of decisions differs when no logit moves by more than `shift`."""
    return float((np.abs(np.asarray(logits, dtype=np.float64) - threshold_logit) <= shift).mean())


def auroc_bound(logits: npt.NDArray[Any], labels: npt.NDArray[Any], shift: float) -> float:
    """AUROC moves by at most this when no logit moves by more than `shift`."""
    wide, true = np.asarray(logits, dtype=np.float64), np.asarray(labels, dtype=bool)
    gaps = np.abs(wide[true][:, None] - wide[~true][None, :])
    return float((gaps <= 2.0 * shift).mean())
