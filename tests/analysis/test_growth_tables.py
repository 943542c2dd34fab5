"""The growth page's tables in numbers: what is on screen is in the file, in its order."""

import pytest

from pamer_lab.analysis.growth import policy_table, run_table
from pamer_lab.analysis.growth_tables import policy_lines, trace_table
from pamer_lab.runs.engine import replay
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace

POLICIES = ["sliding-window:2", "base"]


def test_a_row_per_policy_has_evidence_cost_and_changes_in_the_order_of_the_screen(workspace: Workspace) -> None:
    for policy in POLICIES:
        replay(long_trace(9), policy, workspace)
    rates = {"base": {"uses": 4, "in_context_pct": 100.0}, "sliding-window:2": {"uses": 4, "in_context_pct": 25.0}}
    costs = {"base": (2.0, 2.0), "sliding-window:2": (3.0, 2.0)}
    window, base = policy_lines(policy_table(run_table(workspace)), POLICIES, "base", rates, costs, "EUR").to_dicts()
    assert (window["policy"], base["policy"]) == tuple(POLICIES)
    assert window["evidence_change_points"] == -75 and window["cost_change_pct"] == pytest.approx(50) and window["cost_vs_base"] == 1.5
    assert (
        window["total_change_pct"] == pytest.approx(100 * (window["mean_total"] / base["mean_total"] - 1))
        and window["total_change_pct"] < 0
    )
    assert base["total_change_pct"] == 0 and base["currency"] == "EUR" and base["demo"] is False
    bare = policy_lines(policy_table(run_table(workspace)), POLICIES, "base", {}, {}, "EUR").to_dicts()[0]
    assert bare["cost"] is bare["evidence_uses"] is bare["currency"] is None


def test_a_row_per_trace_and_policy_compares_runs_of_one_trace_and_marks_demo_rows(workspace: Workspace) -> None:
    for turns, policies in ((4, ["base"]), (9, POLICIES)):
        for policy in policies:
            replay(long_trace(turns, trace_id=f"t-{turns}"), policy, workspace)
    rows = trace_table(run_table(workspace), POLICIES, "sliding-window:2", {"t-9": "nine.json"}).to_dicts()
    assert [(row["name"], row["policy"]) for row in rows] == [("nine.json", "sliding-window:2"), ("nine.json", "base"), ("t-4", "base")]
    assert rows[0]["total_change_pct"] == 0 and rows[1]["total_change_pct"] > 0
    assert rows[2]["total_change_pct"] is None, "no run of the baseline on this trace"
    assert all(row["demo"] is False and row["tokenizer"] for row in rows)
