from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pamer_lab.audit.agreement import quality, wanted_steps
from pamer_lab.audit.doubts import doubt_of, doubts
from pamer_lab.audit.queue import Filters, entries, filtered, next_unreviewed, progress
from pamer_lab.audit.reviews import Review


def review(audit_id: str, reviewer: str, verdict: str, *steps: int) -> Review:
    return Review(audit_id, reviewer, 0, verdict, steps, "", datetime(2026, 1, 1, tzinfo=UTC))  # type: ignore[arg-type]


ROWS = [
    {"audit_id": f"a{number}", "run_id": f"r{number % 2}", "outcome": outcome, "turn": number}
    for number, outcome in enumerate(["accepted", "empty", "refused", "accepted"])
]
REVIEWS = [review("a0", "Ada", "right"), review("a0", "Bo", "wrong step", 3), review("a1", "Ada", "right"), review("a3", "Bo", "right")]
QUEUE = entries(ROWS, REVIEWS)


@pytest.mark.parametrize(
    ("filters", "reviewer", "names"),
    [
        (Filters(), "Ada", ["a0", "a1", "a2", "a3"]),
        (Filters(run_id="r1"), "Ada", ["a1", "a3"]),
        (Filters(outcome="accepted"), "", ["a0", "a3"]),
        (Filters(show="unreviewed"), "Ada", ["a2", "a3"]),
        (Filters(show="unreviewed"), "", ["a2"]),
        (Filters(show="reviewers disagree"), "", ["a0"]),
        (Filters(show="not right"), "", ["a0"]),
        (Filters(run_id="r9"), "", []),
    ],
)
def test_a_filter_leaves_out_and_keeps_the_order(filters: Filters, reviewer: str, names: list[str]) -> None:
    assert [entry.audit_id for entry in filtered(QUEUE, filters, reviewer)] == names


def test_the_next_one_is_the_next_unreviewed_going_round() -> None:
    assert next_unreviewed(QUEUE, "a0", "Ada") == "a2"
    assert next_unreviewed(QUEUE, "a3", "Ada") == "a2"
    assert next_unreviewed(QUEUE, "gone", "Ada") == "a2"
    done = entries(ROWS, [review(row["audit_id"], "Ada", "right") for row in ROWS])
    assert next_unreviewed(done, "a1", "Ada") == "a1" and next_unreviewed([], "a1", "Ada") == "a1"


def test_progress_counts_one_reviewers_verdicts_over_the_queue() -> None:
    assert progress(QUEUE, "Ada") == (2, 4) and progress(QUEUE, "Cy") == (0, 4) and progress([], "Ada") == (0, 0)


@pytest.mark.parametrize(
    ("verdict", "steps", "wanted"),
    [
        ("right", (), {4, 7}),
        ("missing evidence", (4, 7, 9), {4, 7, 9}),
        ("missing evidence", (4, 7), None),
        ("missing evidence", (), None),
        ("unnecessary step", (4,), {4}),
        ("unnecessary step", (), None),
        ("unnecessary step", (4, 7), None),
        ("wrong step", (4, 9), {4, 9}),
        ("wrong step", (), None),
    ],
)
def test_a_review_counts_for_quality_only_where_its_steps_say_what_its_verdict_says(
    verdict: str, steps: tuple[int, ...], wanted: set[int] | None
) -> None:
    one = review("a", "Ada", verdict, *steps)
    assert wanted_steps(one, {4, 7}) == wanted
    found = quality([one], {"a": {4, 7}})
    assert (found.reviews, found.unnamed) == ((1, 0) if wanted is not None else (0, 1))


def test_no_negative_verdict_is_hidden_from_a_score() -> None:
    negative = ["missing evidence"] * 8 + ["unnecessary step"] * 6 + ["wrong step"] * 5
    reviews = [review(f"a{number}", "Ada", verdict) for number, verdict in enumerate(["right", *negative])]
    found = quality(reviews, {f"a{number}": {4} for number in range(20)})
    assert found.verdicts == {"right": 1, "missing evidence": 8, "unnecessary step": 6, "wrong step": 5}
    assert (found.total, found.reviews, found.unnamed) == (20, 1, 19)
    assert found.exact == pytest.approx(1 / 20)
    # At best: the right one and the eight with evidence missing have their step right; eight need a second one, five another.
    assert found.precision == pytest.approx(9 / 20) and found.chosen == 20
    assert found.recall == pytest.approx(9 / 22) and found.wanted == 22


@pytest.mark.parametrize(
    ("verdict", "steps", "chosen", "doubt"),
    [
        ("right", (), {4}, "steps lost"),
        ("missing evidence", (), {4}, "steps lost"),
        ("unnecessary step", (), {4}, "steps lost"),
        ("right", (), set(), None),
        ("right", (4,), {4}, None),
        ("right", (4, 5), {4}, "steps contradict"),
        ("missing evidence", (4,), {4}, None),
        ("missing evidence", (4,), {4, 5}, "steps contradict"),
        ("missing evidence", (4, 6), {4, 5}, None),
        ("unnecessary step", (4, 5, 6), {4, 5}, "steps contradict"),
        ("unnecessary step", (3,), set(), "nothing chosen"),
        ("wrong step", (), set(), "nothing chosen"),
        ("wrong step", (6,), {4}, None),
    ],
)
def test_a_doubtful_review_is_found_and_one_that_a_form_stored_as_shown_has_lost_nothing(
    verdict: str, steps: tuple[int, ...], chosen: set[int], doubt: str | None
) -> None:
    one = review("a", "Ada", verdict, *steps)
    assert doubt_of(one, chosen) == doubt
    assert doubt_of(replace(one, as_shown=True), chosen) == (None if doubt == "steps lost" else doubt)
    assert [found.doubt for found in doubts([one], {"a": chosen})] == ([doubt] if doubt else []) and not doubts([one], {})
