"""How far reviewers agree, and how good selections are by their word. Pure.

Cohen's kappa is undefined where there is nothing to compare or where chance alone would explain everything; then there is none, and the
reason is given.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pamer_lab.audit.reviews import Review


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
    """Selections against the steps reviewers would have chosen, summed over reviews."""

    reviews: int
    """Reviews that say which steps they would have chosen."""
    unnamed: int
    """Reviews that leave it open; they count for agreement only."""
    precision: float | None
    recall: float | None
    exact: float | None
    """Share of reviews whose steps are exactly those selected."""


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
    """Precision and recall of selections over the reviews that say which steps they would have chosen."""
    hits = chosen = wanted = exact = counted = unnamed = 0
    for review in reviews:
        if review.audit_id not in selected:
            continue
        ours = selected[review.audit_id]
        theirs = wanted_steps(review, ours)
        if theirs is None:
            unnamed += 1
            continue
        hits, chosen, wanted = hits + len(ours & theirs), chosen + len(ours), wanted + len(theirs)
        exact, counted = exact + (ours == theirs), counted + 1
    return Quality(
        reviews=counted,
        unnamed=unnamed,
        precision=hits / chosen if chosen else None,
        recall=hits / wanted if wanted else None,
        exact=exact / counted if counted else None,
    )


def wanted_steps(review: Review, ours: set[int]) -> set[int] | None:
    """The steps a reviewer would have chosen; None where the review's steps do not say what its verdict says.

    A `right` without steps means the selected ones. A review that misses evidence must name a further step, one that finds a step
    unnecessary must leave one out, and one that finds a step wrong must name another.
    """
    theirs = set(review.steps)
    match review.verdict:
        case "right":
            return theirs or ours
        case "unnecessary step":
            return theirs if ours - theirs else None
        case _:
            return theirs if theirs - ours else None
