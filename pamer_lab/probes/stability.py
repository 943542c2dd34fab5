"""How far a vote is from flipping (Appendix C.2 of the paper).

Knows logits and thresholds. Invariant: a perturbation smaller than the margin returned here changes nothing, and one a little
larger can.
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
