from dataclasses import replace

import pytest

from pamer_lab.analysis.frontier import LEVELS, Outcome, as_markdown, frontier
from pamer_lab.figures import cost as figures

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
