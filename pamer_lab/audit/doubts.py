"""Which stored reviews may not say what their reviewer saw or meant. Pure: doubts are computed on every read and never change a review.

Until reviews noted `as_shown`, the dashboard's form could store no steps while it showed the chosen ones, and the share page's always did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pamer_lab.audit.reviews import Review

Doubt = Literal["steps lost", "nothing chosen", "steps contradict"]
"""`steps lost`: stored without steps, by a form that may have shown some. `nothing chosen`: finds a step unnecessary or wrong although
none was chosen. `steps contradict`: the steps do not match the verdict."""

NEEDS_STEPS = ("unnecessary step", "wrong step")
"""Verdicts about a chosen step; they mean nothing if none was chosen."""


@dataclass(frozen=True)
class Doubtful:
    """A stored review to look at again."""

    audit_id: str
    reviewer: str
    revision: int
    verdict: str
    steps: tuple[int, ...]
    chosen: tuple[int, ...]
    """The steps of the selection."""
    doubt: Doubt


def doubt_of(review: Review, chosen: set[int]) -> Doubt | None:
    """What is wrong with a review of a selection with these steps; None if nothing is."""
    theirs = set(review.steps)
    if not chosen and review.verdict in NEEDS_STEPS:
        return "nothing chosen"
    if not theirs:
        # Without steps, a review by the library leaves them open, which is allowed; one by an old form looks the same.
        return "steps lost" if chosen and review.as_shown is None else None
    if theirs == chosen:  # a verdict other than `right` then leaves open which steps it means
        return None
    match review.verdict:
        case "right":
            return "steps contradict"
        case "unnecessary step":
            return None if chosen - theirs else "steps contradict"
        case _:
            return None if theirs - chosen else "steps contradict"


def doubts(reviews: Sequence[Review], selected: Mapping[str, set[int]]) -> list[Doubtful]:
    """The doubtful reviews among these newest revisions; `selected` has the chosen steps by selection."""
    found = []
    for review in reviews:
        chosen = selected.get(review.audit_id)
        doubt = doubt_of(review, chosen) if chosen is not None else None
        if chosen is not None and doubt is not None:
            facts = (review.audit_id, review.reviewer, review.revision, review.verdict, review.steps)
            found.append(Doubtful(*facts, tuple(sorted(chosen)), doubt))
    return found
