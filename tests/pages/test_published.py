"""The published results page: every table opens, marked as published."""

import json

from pamer_lab.analysis.published import table
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.ui.shared.text import counted_with
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo, import_paths
from tests.pages.conftest import Visit, charts, texts
from tests.runs.making import PARTS
from tests.trajectory.formats.test_workbuddy import LOG

PAGE = "pages/published.py"


def test_the_page_opens_without_any_trace_and_is_marked_as_published(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert ":orange-badge[Published]" in texts(app) and charts(app) == ["published-chart"]
    first = app.dataframe[0].value
    assert "720,000 (-73.2 %)" in set(first["Tokens per task"])


def test_a_link_opens_its_table_and_says_what_was_not_replayed(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE, table="method_comparison")
    assert table("method_comparison").title in texts(app)
    measured = next(frame.value[name] for frame in app.dataframe for name in frame.value.columns if "measured" in name)
    assert not all("%" in value for value in measured), "some policies were not replayed yet"


def test_words_of_statistics_have_a_hint(visit: Visit) -> None:
    app = visit(PAGE, table="evidence_caps")
    assert any(column.get("help") == HINTS["p95"] for frame in app.dataframe for column in json.loads(frame.proto.columns).values())


def test_what_stands_on_demo_data_says_so_with_its_tokenizer(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    demo = min(workspace.trace_rows(), key=lambda row: int(row["turns"]))["trace_id"]
    run = replay(demo, "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, table="full_benchmark")
    measured = next(frame.value[name] for frame in app.dataframe for name in frame.value.columns if "measured" in name)
    assert measured.iloc[0].endswith("% · demo") and "%" not in measured.iloc[1]
    assert ":gray-badge[demo]" in texts(app) and counted_with(run.head.tokens_kind, run.head.tokenizer) in texts(app)


def test_a_study_table_stands_beside_the_study_that_measured_it(visit: Visit) -> None:
    app = visit(PAGE, table="controls")
    assert not app.exception
    frame = next(frame.value for frame in app.dataframe if "Measured here" in frame.value.columns)
    assert "0.751" in set(frame["Published"])
    assert all("±" in value for value in frame["Measured here"])
    assert "demo" in texts(app)


def test_rewards_of_benchmark_traces_are_set_beside_tokens(visit: Visit, workspace: Workspace) -> None:
    import_paths([LOG], workspace)
    app = visit(PAGE, table="full_benchmark")
    assert not app.exception
    found = next(frame.value for frame in app.dataframe if "Recorded here" in frame.value.columns)
    assert list(found["Recorded here"])[:2] == ["37.5", "75.0"] and list(found["n"])[-1] == 2
