"""Where conditions read the same, worked out by hand."""

import numpy as np

from pamer_lab.studies.compact.registry import condition
from pamer_lab.studies.compact.states import Readings
from pamer_lab.studies.compact.study import differences, overlap
from pamer_lab.studies.decisions import Decisions
from tests.studies.compact.making import FILLER, PLANTED, planted, resources, trace


def readings(found: object, *points: int) -> Readings:
    asked = np.ones((2, len(points)), dtype=bool)
    rows = Decisions(tuple((found.trace_id, t) for t in points), ("q",) * len(points), ~asked, asked, "")  # type: ignore[attr-defined]
    return Readings({found.trace_id: found}, rows, resources())  # type: ignore[attr-defined,dict-item]


def test_with_three_older_blocks_or_fewer_every_top3_reads_the_same_and_says_so() -> None:
    short = readings(planted(), 2, 5)
    found = [overlap(condition(name), short) for name in ("raw-top3", "embedding-top3", "random-top3", "recency-top3")]
    assert {one["reads"] for one in found} == {found[0]["reads"]}
    assert [one["points_unlike_recency"] for one in found] == [0, 0, 0, 0]


def test_a_selector_that_brings_back_an_old_block_is_unlike_recency_where_there_is_a_choice() -> None:
    long = readings(planted(), 5, 8)
    assert PLANTED in {one.block for one in long.of(condition("raw-top3"))[1].evidence}
    raw, recency = (overlap(condition(name), long) for name in ("raw-top3", "recency-top3"))
    assert (raw["points_unlike_recency"], recency["points_unlike_recency"]) == (1, 0)
    assert raw["reads"] != recency["reads"]


def test_a_cap_counts_the_points_at_which_it_left_something_out() -> None:
    sizes = readings(trace([f"{text} size={size}" for text, size in zip(FILLER, (20, 30, 40, 50, 60, 70, 80), strict=True)]), 3, 4, 5)
    # older blocks: {20}, {20, 30}, {20, 30, 40}
    changed = [overlap(condition(f"embedding-top3-cap{cap}", (cap,)), sizes)["points_cap_changed"] for cap in (19, 49, 89, 90)]
    assert changed == [3, 2, 1, 0]


def test_what_adds_states_or_teaching_to_its_text_is_never_the_same_as_its_text() -> None:
    both = readings(planted(), 5, 8)
    assert overlap(condition("recent2-kd"), both)["reads"] == overlap(condition("gru512"), both)["reads"] == ""
    assert differences([condition("recent2"), condition("recent4"), condition("recent2-kd")], readings(planted(), 2, 5)) == {
        "recent2": 0,
        "recent4": 1,
    }
