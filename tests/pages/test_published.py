"""The published results page: every table opens, marked as published."""

from pamer_lab.analysis.published import table
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.ui.shared.text import counted_with
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo
from tests.pages.conftest import Visit, texts
from tests.runs.making import PARTS

PAGE = "pages/published.py"


def test_the_page_opens_without_any_trace_and_is_marked_as_published(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert "nothing on this chart was measured by this program" in texts(app)
    first = app.dataframe[0].value
    assert "720,000 (-73.2 %)" in set(first["Tokens per task"])


def test_a_link_opens_its_table_and_says_what_was_not_replayed(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE, table="method_comparison")
    assert table("method_comparison").title in texts(app)
    assert "not replayed yet" in set(app.dataframe[1].value["Change, measured here"])


def test_words_of_statistics_have_a_hint(visit: Visit) -> None:
    app = visit(PAGE, table="evidence_caps")
    assert "95 % of all values" in app.dataframe[0].proto.columns


def test_what_stands_on_demo_data_says_so_with_its_tokenizer(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    demo = min(workspace.trace_rows(), key=lambda row: int(row["turns"]))["trace_id"]
    run = replay(demo, "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, table="full_benchmark")
    frame = next(frame.value for frame in app.dataframe if "Change, measured here" in frame.value.columns)
    assert frame["Change, measured here"].iloc[0].endswith("% · demo") and frame["Change, measured here"].iloc[1] == "not replayed yet"
    assert ":gray-badge[demo]" in texts(app) and counted_with(run.head.tokens_kind, run.head.tokenizer) in texts(app)


def test_a_study_table_stands_beside_the_study_that_measured_it(visit: Visit) -> None:
    app = visit(PAGE, table="controls")
    assert not app.exception
    frame = next(frame.value for frame in app.dataframe if "Measured here" in frame.value.columns)
    assert "0.751" in set(frame["Published"])
    assert all("±" in value for value in frame["Measured here"])
    assert "demo" in texts(app)
