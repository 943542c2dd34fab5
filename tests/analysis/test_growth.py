"""Tables across traces against sums done by hand."""

import polars as pl
import pytest

from pamer_lab.analysis.growth import (
    complete_traces,
    covering,
    mean_context,
    missing_runs,
    newest_runs,
    opened_with,
    policy_table,
    recorded_scores,
    reduction,
    run_table,
    score_averages,
    turn_table,
    with_heads,
)
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace


def test_the_mean_is_taken_over_the_traces_still_running(workspace: Workspace) -> None:
    runs = [replay(long_trace(turns, trace_id=f"t-{turns}"), "base", workspace) for turns in (3, 5)]
    replay(long_trace(3, trace_id="t-3"), "sliding-window:1", workspace)
    table = run_table(workspace)
    assert table.height == 3
    means = mean_context(turn_table(workspace, table)).filter(pl.col("policy") == "base")
    assert means["running"].to_list() == [2, 2, 2, 1, 1]
    expected = [(runs[0].turns[t].active_tokens + runs[1].turns[t].active_tokens) / 2 for t in range(3)]
    expected += [runs[1].turns[t].active_tokens for t in (3, 4)]
    assert means["mean_active"].to_list() == pytest.approx(expected)
    rows = {row["policy"]: row for row in policy_table(table).to_dicts()}
    assert rows["base"]["mean_peak"] == (runs[0].totals["peak_active"] + runs[1].totals["peak_active"]) / 2
    assert rows["base"]["reduction_pct"] == rows["base"]["reduction_low"] == rows["base"]["reduction_high"] == 0
    assert 0 < rows["sliding-window:1"]["reduction_pct"] < 100


def test_of_two_runs_of_a_policy_the_one_over_all_turns_is_compared_else_the_newer(workspace: Workspace) -> None:
    whole = replay(long_trace(6), "base", workspace)
    replay(long_trace(6), "base", workspace, ReplayOptions(turn_limit=3))
    limits = [replay(long_trace(6), "sliding-window:2", workspace, ReplayOptions(turn_limit=limit)) for limit in (4, 2, 3)]
    table = run_table(workspace)
    assert table.height == 5
    assert newest_runs(table)["run_id"].to_list() == [whole.run_id, limits[-1].run_id]
    rows = policy_table(newest_runs(table)).to_dicts()
    assert [(row["demo"], row["tokenizer"], row["tokens_kind"]) for row in rows] == [
        (False, whole.head.tokenizer, whole.head.tokens_kind) for _ in rows
    ]


def test_an_empty_workspace_gives_empty_tables(workspace: Workspace) -> None:
    table = run_table(workspace)
    assert table.is_empty() and turn_table(workspace, table).is_empty() and policy_table(table).is_empty()


def test_the_interval_resamples_tasks_not_traces() -> None:
    def runs(tasks: list[str]) -> pl.DataFrame:
        return pl.DataFrame({"question_id": tasks, "total": [10, 20, 30, 80], "base_total": [100, 100, 100, 100]})

    together, apart = reduction(runs(["a"] * 4)), reduction(runs(["a", "b", "c", "d"]))
    assert together["reduction_pct"] == apart["reduction_pct"] == 65
    assert together["reduction_low"] == together["reduction_high"] == 65
    assert apart["reduction_low"] < 50 and apart["reduction_high"] > 80
    assert apart == reduction(runs(["a", "b", "c", "d"]))


def test_scores_are_weighted_by_task_or_by_domain() -> None:
    # The paper's 260 tasks: 80 Code, 50 Office, 60 Security, 70 Web (Appendix D.1).
    sizes, means = {"Code": 80, "Office": 50, "Security": 60, "Web": 70}, {"Code": 0.5, "Office": 0.8, "Security": 0.25, "Web": 1.0}
    rows = [{"task": f"{name}{n}", "domain": name, "reward": means[name]} for name, size in sizes.items() for n in range(size)]
    found = score_averages(pl.DataFrame(rows))
    assert found["task_weighted"] == pytest.approx(100 * (80 * 0.5 + 50 * 0.8 + 60 * 0.25 + 70) / 260)
    assert found["equal_weight"] == pytest.approx(100 * (0.5 + 0.8 + 0.25 + 1.0) / 4)


def test_replicas_of_a_task_count_once_and_traces_without_reward_are_left_out(workspace: Workspace) -> None:
    given = [("t-1", "q1", 1.0, "Web"), ("t-2", "q1", 0.0, "Web"), ("t-3", "q2", 1.0, "Web"), ("t-4", "q3", None, "Code")]
    for trace_id, question, reward, domain in given:
        replay(long_trace(1, trace_id=trace_id, question_id=question, reward=reward, meta={"domain": domain}), "base", workspace)
    found = recorded_scores(workspace, [entry[0] for entry in given])
    assert found["task_weighted"] == 75 and found["tasks"] == 2 and found["traces"] == 4 and set(found["domains"]) == {"Web"}
    assert recorded_scores(workspace, ["t-4"])["task_weighted"] is None


def test_what_every_policy_has_and_what_one_lacks() -> None:
    runs = pl.DataFrame({"policy": ["base", "base", "pamer"], "trace_id": ["t-1", "t-2", "t-1"]})
    assert complete_traces(runs, ["base", "pamer"]) == {"t-1"} and complete_traces(runs.head(2), ["base"]) == {"t-1", "t-2"}
    assert missing_runs(runs, ["base", "pamer", "pamer+"], ["t-1", "t-2"]) == {"pamer": ["t-2"], "pamer+": ["t-1", "t-2"]}
    assert missing_runs(pl.DataFrame(), ["base"], ["t-1"]) == {"base": ["t-1"]}


def test_a_comparison_opens_with_the_readers_own_traces() -> None:
    rows = [
        {"trace_id": name, "demo": demo, "format": form, "reward": reward}
        for name, demo, form, reward in [("a", False, "x", None), ("b", False, "y", 1.0), ("c", True, "x", 0.5), ("d", False, "x", 0.0)]
    ]
    assert opened_with(rows) == "my traces" and opened_with(rows[2:3]) == "all"


def test_policies_that_lag_behind_are_left_out_while_they_run() -> None:
    runs = pl.DataFrame({"policy": ["base", "base", "pamer"], "trace_id": ["a", "b", "a"]})
    assert covering(runs, ["pamer", "base"]) == ["base"] and covering(runs.clear(), ["base"]) == []


def test_runs_of_other_heads_are_left_out_but_not_those_whose_policy_names_them() -> None:
    rows = [("base", ""), ("pamer", "one"), ("pamer", "two"), ("pamer:heads=second", "two")]
    runs = pl.DataFrame(rows, schema=["policy", "heads"], orient="row")
    assert with_heads(runs, "one").rows() == [rows[0], rows[1], rows[3]] and with_heads(runs, "").rows() == rows
