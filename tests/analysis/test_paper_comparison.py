"""Published cells beside measured ones: the right rows meet, and nothing is invented."""

import pytest

from pamer_lab.analysis.growth import policy_table, recorded_scores, run_table
from pamer_lab.analysis.paper_comparison import BENCHMARK, KINDS, POLICIES, comparison, recorded_comparison, token_changes
from pamer_lab.analysis.published import names, sample_study, table
from pamer_lab.runs.engine import replay
from pamer_lab.studies.study import read_study
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
from tests.analysis.making import control_study
from tests.pages.test_contexts import FIXTURE
from tests.runs.making import long_trace
from tests.trajectory.formats.test_workbuddy import LOG


def test_controls_meet_by_name_and_carry_both_values() -> None:
    study = control_study()
    lines = {(line["row"], line["target"], line["metric"]): line for line in comparison("controls", study)}
    row = next(row for row in study.rows if row["name"] == "Length + turn" and row["target"] == "recall")
    found = lines["Length + turn", "recall", "auroc"]
    assert (found["published"], found["measured"], found["seeds"]) == (0.552, row["mean"], 2)
    assert lines["Length + turn", "compression", "auprc"]["published"] == 0.533
    short = {line["row"]: line["here"] for line in comparison("signals", study)}
    assert short == {"Length / Turn": "Length + turn", "Metadata": "Length + turn + tool type"}


def test_layers_meet_by_share_of_depth_and_the_reference_row_does_not_stand_in() -> None:
    study = sample_study("layerwise")
    lines = comparison("layerwise", study)
    places = {line["row"]: line["here"] for line in lines}
    assert places["Block 16, last"] == "block_15 last"
    assert places["Final RMSNorm, mean"] == "final mean"
    final = [line["published"] for line in lines if line["row"] == "Final RMSNorm, last" and line["metric"] == "auroc"]
    assert final == [0.831, 0.765]


@pytest.mark.parametrize(("name", "cells"), [("compact_main", 18), ("retrieval", 40), ("evidence_caps", 15)])
def test_a_whole_compact_study_measures_every_cell(name: str, cells: int) -> None:
    lines = comparison(name, read_study(FIXTURE))
    assert len(lines) == cells
    assert all(line["measured"] is not None for line in lines)


def test_every_table_that_is_said_to_be_measured_is_published_and_has_a_counterpart() -> None:
    assert set(KINDS) <= set(names())
    train = sample_study("train")
    assert len(comparison("capacity_hint", train)) == 24
    assert {line["here"] for line in comparison("full_context_reference", train)} == {"Faithful hint, MLP (final)"}


def test_token_changes_meet_by_policy_and_a_policy_without_a_run_has_none(workspace: Workspace) -> None:
    replay(long_trace(6), "sliding-window:5", workspace)
    runs = run_table(workspace)
    lines = {line["policy"]: line for line in token_changes(table("method_comparison"), runs)}
    assert set(lines) == set(POLICIES["method_comparison"].values())
    here, absent = lines["sliding-window:5"], lines["pamer"]
    assert here["measured_pct"] == -policy_table(runs)["reduction_pct"][0] and here["traces"] == 1 and not here["demo"]
    assert absent["measured_pct"] is None and absent["traces"] == 0 and absent["published_pct"] < 0
    assert token_changes(table("controls"), runs) == []


def test_a_published_change_is_shown_as_the_paper_prints_it(workspace: Workspace) -> None:
    seen = 0
    for name in POLICIES:
        published = table(name)
        for line in token_changes(published, run_table(workspace)):
            printed = published.row(line["row"]).get("tokens_change_pct")
            assert printed is None or line["published_pct"] == printed
            seen += printed is not None
    assert seen > 5


def test_rewards_and_tokens_of_benchmark_traces_meet_the_base_agents_row(workspace: Workspace) -> None:
    rows = import_paths([LOG], workspace).traces
    assert {row["format"] for row in rows} == {BENCHMARK}
    scores = recorded_scores(workspace, [row["trace_id"] for row in rows])
    found = recorded_comparison(table("method_comparison"), scores)
    assert found is not None and (found["score"], found["tokens"]) == (67.5, 1890000)
    assert (found["recorded_score"], found["tasks"]) == (37.5, 2)
    assert (found["recorded_tokens"], found["usage_traces"]) == ((80 + 6 + 60 + 2) / 2, 2)
    assert found["domains"]["code"] == {"score": 72.9, "recorded": {"score": 75.0, "tasks": 1}}
    assert recorded_comparison(table("controls"), scores) is None
