import json
from dataclasses import replace

import pytest

from pamer_lab.analysis.equal_tokens import equal_tokens, equal_tokens_markdown, signed_range
from pamer_lab.analysis.frontier import frontier
from pamer_lab.analysis.outcomes import Outcome

ONE = Outcome("base", "t0", "q0", 10.0, 10.0, 100, 100, 1000, 1000, 300, 900, 1000)


def runs(policy: str, tokens: int, kept: int, cost: float = 5.0, traces: int = 3) -> list[Outcome]:
    return [
        replace(ONE, policy=policy, trace_id=f"t{n}", task=f"q{n}", tokens=tokens + 10 * n, kept=kept - n, cost=cost) for n in range(traces)
    ]


WINDOWS = [*runs("base", 1000, 102, 10.0), *runs("sliding-window:5", 200, 72, 4.0), *runs("sliding-window:20", 600, 92, 8.0)]


def found(*outcomes: Outcome) -> list[dict[str, object]]:
    return list(frontier([*WINDOWS, *outcomes])["equal_tokens"])


def test_a_policy_is_compared_with_the_size_between_two_that_uses_its_tokens() -> None:
    (row,) = found(*runs("pamer", 400, 90, 5.0))
    assert (row["policy"], row["yardstick"], row["traces"], row["tasks"]) == ("pamer", "sliding-window", 3, 3)
    # Half way between the two windows: 82 % of the evidence at 0.6 of base; the policy has 90 % at 0.5.
    assert row["evidence_difference"] == pytest.approx(8.0) and row["cost_difference"] == pytest.approx(-0.1)
    assert row["evidence_low"] == pytest.approx(8.0) == row["evidence_high"]  # the tasks differ alike under each policy
    assert row["tokens_vs_base"] == pytest.approx(0.41)
    json.dumps(row)


def test_above_the_largest_size_the_base_agent_is_the_yardstick_and_below_the_smallest_there_is_none() -> None:
    large, small = found(*runs("pamer", 800, 97), *runs("pamer+", 100, 50))
    assert large["evidence_difference"] == pytest.approx(0.0)
    assert small["evidence_difference"] is None is small["cost_low"]
    assert equal_tokens_markdown([large, small]).count("\n") == 4


def test_only_traces_that_all_have_are_compared() -> None:
    (row,) = found(*runs("pamer", 400, 90, traces=2), replace(ONE, policy="pamer", trace_id="other", task="other"))
    assert row["traces"] == 2
    assert found(replace(ONE, policy="pamer", trace_id="other", task="other")) == []


def test_one_size_or_no_base_run_is_no_yardstick() -> None:
    assert frontier([*runs("base", 1000, 100), *runs("sliding-window:5", 200, 70), *runs("pamer", 400, 90)])["equal_tokens"] == []
    assert equal_tokens({"sliding-window:5": [ONE], "sliding-window": [ONE], "pamer": [ONE]}) == []


def test_other_settings_of_a_yardstick_are_policies_like_any_other() -> None:
    (row,) = found(*runs("periodic-summary:5", 400, 90), *runs("sliding-window:5:drop=calls", 400, 90))
    assert (row["policy"], row["yardstick"]) == ("sliding-window:5:drop=calls", "sliding-window")


def test_traces_without_evidence_or_cost_have_no_row() -> None:
    for nothing in ({"kept": 0, "uses": 0}, {"cost": 0.0, "base": 0.0}, {"tokens": 0, "base_tokens": 0}):
        entries = [replace(entry, **nothing) for entry in [*WINDOWS, *runs("pamer", 400, 90)]]  # type: ignore[arg-type]
        assert frontier(entries)["equal_tokens"] == []


def test_a_difference_of_nothing_stands_between_gains_and_losses_and_a_missing_one_last() -> None:
    rows = found(*runs("loses", 800, 90), *runs("same", 800, 97), *runs("gains", 800, 99), *runs("small", 100, 50))
    lines = equal_tokens_markdown([{**row, "evidence_difference": 0.0} if row["policy"] == "same" else row for row in rows]).splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:]] == ["gains", "same", "loses", "small"]


def test_resamples_without_a_yardstick_are_counted_out_and_may_leave_no_interval() -> None:
    (row,) = found(*runs("pamer", 400, 90))
    assert row["resamples"] == 1_000
    assert "[" not in signed_range({**row, "evidence_low": None, "evidence_high": None}, "evidence", 1)
