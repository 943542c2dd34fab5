"""Agreement between reviewers, and how they judge the selections. Pure.

Cohen's kappa is undefined where there is nothing to compare or where chance alone would explain everything; then it is None, with
the reason.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pamer_lab.audit.reviews import VERDICTS, Review


@dataclass(frozen=True)
class Agreement:
    """Two reviewers' verdicts on the selections both have reviewed."""

    reviewers: tuple[str, str]
    common: int
    agreed: float | None
    """Share of equal verdicts."""
    kappa: float | None
    reason: str = ""
    """Why there is no kappa."""


@dataclass(frozen=True)
class Quality:
    """Selections against their reviews: the verdicts, and the steps that reviewers would have chosen.

    Precision, recall and exact match count every review. A negative verdict that names no steps counts at its best, as if one step were
    missing, unnecessary or exchanged; with such reviews (`unnamed`) the three are upper bounds.
    """

    verdicts: dict[str, int]
    """Reviews by verdict, in the order of `VERDICTS`."""
    reviews: int
    """Reviews whose steps agree with their verdict."""
    unnamed: int
    """Negative verdicts that do not say which steps they mean."""
    precision: float | None
    recall: float | None
    exact: float | None
    """Share of reviews whose steps are exactly those selected."""
    chosen: int = 0
    """Chosen steps over all reviews: the denominator of precision."""
    wanted: int = 0
    """Needed steps over all reviews: the denominator of recall."""

    @property
    def total(self) -> int:
        """All reviews, each of which counts."""
        return self.reviews + self.unnamed


def cohens_kappa(reviews: Sequence[Review], one: str, other: str) -> Agreement:
    """Agreement of two reviewers; each one's newest revision counts."""
    said: dict[str, dict[str, str]] = {one: {}, other: {}}
    for review in reviews:
        if review.reviewer in said:
            said[review.reviewer][review.audit_id] = review.verdict
    common = sorted(set(said[one]) & set(said[other]))
    pair = (one, other)
    if not common:
        return Agreement(pair, 0, None, None, "no selection was reviewed by both")
    first, second = [said[one][name] for name in common], [said[other][name] for name in common]
    observed = sum(left == right for left, right in zip(first, second, strict=True)) / len(common)
    counts, others = Counter(first), Counter(second)
    expected = sum(counts[verdict] * others[verdict] for verdict in counts) / len(common) ** 2
    if len(common) < 2:
        return Agreement(pair, len(common), observed, None, "one common selection is not enough")
    if expected == 1:
        return Agreement(pair, len(common), observed, None, "both gave every selection the same verdict, so chance explains all agreement")
    return Agreement(pair, len(common), observed, (observed - expected) / (1 - expected))


def all_agreements(reviews: Sequence[Review]) -> list[Agreement]:
    """Every pair of reviewers, by name."""
    names = sorted({review.reviewer for review in reviews})
    return [cohens_kappa(reviews, one, other) for place, one in enumerate(names) for other in names[place + 1 :]]


def quality(reviews: Sequence[Review], selected: Mapping[str, set[int]]) -> Quality:
    """Verdicts, and precision and recall of the selections, over all reviews of `selected`."""
    given = [review for review in reviews if review.audit_id in selected]
    said = Counter(review.verdict for review in given)
    hits = chosen = wanted = exact = unnamed = 0
    for review in given:
        ours = selected[review.audit_id]
        theirs = wanted_steps(review, ours)
        if theirs is None:
            unnamed += 1
            hit, needed = _at_best(review.verdict, len(ours))
            hits, chosen, wanted = hits + hit, chosen + len(ours), wanted + needed
            continue
        hits, chosen, wanted = hits + len(ours & theirs), chosen + len(ours), wanted + len(theirs)
        exact += ours == theirs
    return Quality(
        verdicts={verdict: said[verdict] for verdict in VERDICTS},
        reviews=len(given) - unnamed,
        unnamed=unnamed,
        precision=hits / chosen if chosen else None,
        recall=hits / wanted if wanted else None,
        exact=exact / len(given) if given else None,
        chosen=chosen,
        wanted=wanted,
    )


def _at_best(verdict: str, chosen: int) -> tuple[int, int]:
    """(right steps, needed steps) of a negative verdict without steps on a selection of `chosen` steps, if only one step is at fault."""
    match verdict:
        case "missing evidence":
            return chosen, chosen + 1
        case "unnecessary step":
            return max(chosen - 1, 0), max(chosen - 1, 0)
        case _:
            return max(chosen - 1, 0), max(chosen, 1)


def wanted_steps(review: Review, ours: set[int]) -> set[int] | None:
    """The steps a reviewer would have chosen; None if the review's steps do not match its verdict.

    A `right` without steps means the selected ones. A review that misses evidence must name a further step, one that finds a step
    unnecessary must leave one out, and one that finds a step wrong must name another. An `unnecessary step` without
    steps counts only if the form stored them as shown; older forms may have lost them (`doubts.py`).
    """
    theirs = set(review.steps)
    match review.verdict:
        case "right":
            return theirs or ours
        case "unnecessary step":
            return theirs if ours - theirs and (theirs or review.as_shown) else None
        case _:
            return theirs if theirs - ours else None
