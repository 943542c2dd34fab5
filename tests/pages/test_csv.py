"""Downloaded tables hold what the screen shows: the same rows in the same order, and on each row how the numbers were made."""

import pytest

from pamer_lab.analysis.compact import expanded_table
from pamer_lab.probes.margins import confusion, unpack
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.studies.study import read_study, save_study
from pamer_lab.workspace import Workspace
from tests.analysis.making import layer_study
from tests.pages.conftest import Files, Visit, chat, opened, put
from tests.pages.test_contexts import FIXTURE
from tests.runs.making import PARTS
from tests.runs.test_evidence import hand_made

COUNTING = {"demo", "tokenizer", "tokens_kind"}


def test_the_files_of_the_growth_page_have_the_rows_of_its_tables(visit: Visit, workspace: Workspace, files: Files) -> None:
    put(workspace, long=chat(9), short=chat(4) + b"\n" + chat(5).replace(b"question", b"task"))
    replay(hand_made(), "base", workspace, ReplayOptions(device="cpu", parts=PARTS))
    policies = ["sliding-window:2", "base"]
    app = visit("pages/growth.py", policies=policies)  # type: ignore[arg-type]
    app.session_state["per-trace-panel"] = True
    app.run()
    assert not app.exception
    means, totals, traces, points = (opened(files, f"{name}.csv") for name in ("growth-means", "policies", "traces", "frontier"))
    assert all(set(frame.columns) >= COUNTING for frame in (means, totals, traces, points))
    shown = next(frame.value for frame in app.dataframe if "Trace" in frame.value.columns)
    assert traces["name"].tolist() == shown["Trace"].tolist() and traces["policy"].tolist() == shown["Policy"].tolist()
    assert {"short.json", "short.json #1"} < set(shown["Trace"])  # two traces of one file can be told apart
    by_policy = next(frame.value for frame in app.dataframe if "Mean peak" in frame.value.columns)
    assert totals["policy"].tolist() == policies and [text.split(" ")[0] for text in by_policy["Policy"]] == policies
    kept = [f"{row.evidence_in_context_pct:.1f} % of {row.evidence_uses:,}" for row in totals.itertuples()]
    assert kept == by_policy["Evidence in context"].tolist()
    assert sorted(points["policy"]) == sorted(policies) and points["cost_vs_base"].is_monotonic_increasing
    assert dict(points[["policy", "cost_vs_base"]].values) == pytest.approx(dict(totals[["policy", "cost_vs_base"]].values))
    assert set(points["cost_kind"]) == {"simulated"} and points["prices"].all()


@pytest.mark.parametrize(
    ("part", "name", "column"),
    [("Tokens and cost", "totals", "Uncached"), ("Drops",) * 2 + ("Evidence lost",), ("Evidence",) * 2 + ("First seen in",)],
)
def test_the_files_of_a_replay_have_the_rows_of_its_tables(
    visit: Visit, workspace: Workspace, files: Files, part: str, name: str, column: str
) -> None:
    run = replay(hand_made(), "sliding-window:2", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit("pages/replay.py", trace=run.head.trace_id, policies=["sliding-window:2"], more=part)  # type: ignore[arg-type]
    shown = next(frame.value for frame in app.dataframe if column in frame.value.columns)
    saved = opened(files, f"{name.casefold()}.csv")
    assert set(saved.columns) >= COUNTING and set(saved["tokenizer"]) == {run.head.tokenizer}
    assert saved[list(shown.columns)].astype(str).to_numpy().tolist() == shown.astype(str).to_numpy().tolist()
    assert "cost.csv" not in files or set(opened(files, "cost.csv").columns) >= COUNTING


def test_the_files_of_scores_have_each_decision_with_its_split_and_model(visit: Visit, workspace: Workspace, files: Files) -> None:
    study = layer_study()
    save_study(workspace, study)
    visit("pages/signals.py")
    row = next(row for row in study.rows if row["name"] == "final last" and row["target"] == "compression")
    saved = opened(files, "scores-compression.csv")
    assert {"seed", "layer", "pooling", "threshold", "unit", "kind", "model", "demo"} <= set(saved.columns)
    hits = saved[(saved["label"] == "needed") & (saved["margin"] >= 0)]
    assert len(hits) == confusion(unpack(row)).hits and set(saved["threshold"]) == set(row["thresholds"])
    assert set(saved["model"]) == {study.model} and not saved["demo"].any()


def test_the_file_of_conditions_has_the_rows_of_its_table(visit: Visit, workspace: Workspace, files: Files) -> None:
    study = read_study(FIXTURE)
    visit("pages/contexts.py", **{"compact-study": save_study(workspace, study)})
    saved = opened(files, "tradeoff.csv")
    assert saved["label"].tolist() == [line["label"] for line in expanded_table(study)]
    assert set(saved["model"]) == {study.model} and set(saved["kind"]) == {"measured"} and not saved["demo"].any()
