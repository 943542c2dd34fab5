from dataclasses import replace
from typing import Any

import pytest

from pamer_lab.analysis.frontier import LEVELS, as_markdown, cost_parts, frontier, parts_markdown, without_times
from pamer_lab.analysis.outcomes import Outcome
from pamer_lab.figures import cost as figures
from pamer_lab.runs.cost import NO_TIMES

ONE = Outcome("base", "t0", "q0", 10.0, 10.0, 100, 100, 1000, 1000, 300, 900, 1000)


def runs(policy: str, cost: float, kept: int, traces: int = 4) -> list[Outcome]:
    """A policy's runs, the first dearer than the others."""
    return [
        replace(ONE, policy=policy, trace_id=f"t{n}", task=f"q{n}", cost=cost + (0.4 if n == 0 else 0.0), kept=kept - 2 * (n == 1))
        for n in range(traces)
    ]


def test_points_are_pooled_and_those_that_none_beats_are_marked() -> None:
    found = frontier([*runs("base", 10.0, 100), *runs("cheap", 3.0, 85), *runs("beaten", 4.0, 84), *runs("middle", 5.0, 93)])
    assert [point["policy"] for point in found["points"]] == ["cheap", "beaten", "middle", "base"]
    assert [point["policy"] for point in found["points"] if point["frontier"]] == ["cheap", "middle", "base"]
    cheap = found["points"][0]
    assert cheap["cost_vs_base"] == pytest.approx((4 * 3.0 + 0.4) / 40) and cheap["evidence_pct"] == pytest.approx((4 * 85 - 2) / 4)
    assert cheap["cost_low"] < cheap["cost_vs_base"] < cheap["cost_high"] and cheap["traces"] == 4 == found["traces"]
    assert cheap["uncached_share"] == pytest.approx(0.1) and cheap["mean_peak"] == 300
    assert {row["level"]: row["policy"] for row in found["cheapest"]} == dict(zip(LEVELS, ["cheap", "middle", "base"], strict=True))


def test_a_policy_says_on_how_many_traces_it_changed_a_request() -> None:
    never = [replace(entry, changed=entry.trace_id == "t0") for entry in runs("rare", 10.0, 100)]
    found = frontier([*runs("cheap", 3.0, 85), *never])
    assert {point["policy"]: point["changed"] for point in found["points"]} == {"cheap": 4, "rare": 1}
    assert [line.split(" | ")[1:3] for line in as_markdown(found).splitlines()[2:4]] == [["4", "4"], ["4", "1"]]


def test_traces_without_timestamps_are_counted_once_and_said() -> None:
    found = frontier([replace(entry, untimed=entry.trace_id != "t0") for name in ("base", "cheap") for entry in runs(name, 3.0, 85)])
    assert found["untimed"] == 3 and {"3", "4"} <= set(without_times(found).split())
    assert without_times(frontier(runs("base", 3.0, 85))) == ""
    assert without_times(frontier([replace(ONE, untimed=True)])) == NO_TIMES


def test_a_level_that_no_policy_reaches_has_none_and_one_task_no_spread() -> None:
    found = frontier(runs("cheap", 3.0, 70, traces=1))
    assert all(row["policy"] is None for row in found["cheapest"])
    assert found["points"][0]["cost_low"] == found["points"][0]["cost_high"] == pytest.approx(0.34)
    assert "none" in as_markdown(found)


def test_free_prices_and_traces_without_evidence_divide_by_nothing() -> None:
    assert frontier([replace(ONE, cost=0.0, base=0.0)])["points"] == [] and frontier([])["traces"] == 0
    found = frontier([replace(ONE, kept=0, uses=0)])
    assert found["points"][0]["evidence_pct"] is None and not found["points"][0]["frontier"]
    assert "base" in as_markdown(found) and len(figures.frontier(found).data) == 1


def test_the_chart_has_a_point_per_policy_and_joins_the_frontier() -> None:
    found = frontier([*runs("base", 10.0, 100), *runs("pamer", 3.0, 85), *runs("pamer+", 4.0, 84)])
    drawn = figures.frontier(found)
    assert [trace.name for trace in drawn.data[1:]] == ["base", "pamer", "pamer+"] and list(drawn.data[0].x) == [
        point["cost_vs_base"] for point in found["points"] if point["frontier"]
    ]


def test_policies_with_all_of_the_evidence_are_drawn_on_an_axis_of_percent() -> None:
    low, high = figures.frontier(frontier([*runs("base", 10.0, 100), *runs("pamer", 3.0, 100)])).layout.yaxis.range
    assert low <= 80 and 100 <= high < 110


def test_a_policy_that_never_acts_is_not_named_before_the_base_agent() -> None:
    found = frontier([*runs("auto-compact", 10.0, 100), *runs("base", 10.0, 100)])
    assert [row["policy"] for row in found["cheapest"]] == ["base"] * len(LEVELS)


def test_no_label_is_crossed_by_an_interval_or_the_line() -> None:
    spread = {"cost_low": 0.4, "cost_high": 0.9, "evidence_low": 76.0, "evidence_high": 92.0}
    found = frontier([*runs("base", 10.0, 100), *runs("pamer", 6.0, 85)])
    next(point for point in found["points"] if point["policy"] == "pamer").update(spread)
    places = {trace.name: trace.textposition for trace in figures.frontier(found).data if trace.text}
    assert "center" not in places["pamer"] and "middle" not in places["pamer"]


def test_policies_at_one_place_share_a_label() -> None:
    found = frontier([*runs("auto-compact", 10.0, 100), *runs("base", 10.0, 100), *runs("pamer", 6.0, 85)])
    assert {trace.name for trace in figures.frontier(found).data if trace.text and trace.text[0]} == {"base", "pamer"}


def run(policy: str, base: float = 10.0, **money: float) -> dict[str, Any]:
    parts = dict.fromkeys(("read", "write", "uncached", "output", "auxiliary"), 0.0) | money
    cost = {**parts, "base_total": base, "if_previous_only": {"total": sum(parts.values()) + 1}}
    totals = {"actions": {"compress": 2, "recall": 3}, "prefix": {"breaks": 5, "violations": 3}}
    return {"policy": policy, "cost": cost, "totals": totals}


def test_parts_are_pooled_relative_to_the_base_agents_bill_and_sorted() -> None:
    rows = cost_parts([run("dear", write=9.0, output=2.0), run("cheap", read=1.0), run("cheap", base=30.0, output=3.0)])
    assert [row["policy"] for row in rows] == ["cheap", "dear"]
    cheap = rows[0]
    assert (cheap["read"], cheap["output"], cheap["cost_vs_base"]) == pytest.approx((1 / 40, 3 / 40, 0.1))
    assert cheap["if_previous_only"] == pytest.approx(6 / 40) and cheap["traces"] == 2
    assert (cheap["compressions"], cheap["recalls"], cheap["breaks"], cheap["other_breaks"]) == (4, 6, 10, 6)
    assert len(parts_markdown(rows).splitlines()) == 4


def test_free_prices_have_no_parts() -> None:
    assert cost_parts([run("base", base=0.0)]) == [] and cost_parts([]) == []
