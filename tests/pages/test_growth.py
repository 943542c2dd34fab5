"""The context growth page: a fresh install, deltas against a baseline, what is missing."""

from urllib.parse import parse_qs, urlsplit

import pytest

from pamer_lab.errors import StorageError
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.prices import FILE, Price, PriceTable, write_prices
from pamer_lab.runs.store import RunStore
from pamer_lab.ui.growth.table import EVIDENCE_CHANGE, good_or_bad
from pamer_lab.ui.shared.text import counted_with
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo
from tests.pages.conftest import Visit, chat, put, texts
from tests.runs.making import PARTS, estimated, long_trace

PAGE = "pages/growth.py"


def test_a_fresh_install_shows_the_demo_traces(visit: Visit) -> None:
    app = visit(PAGE)
    assert not app.exception
    assert not app.error
    assert "How full is the context on average, turn by turn?" in texts(app)
    assert "Actions are fixed" in texts(app)


@pytest.mark.usefixtures("no_demo")
def test_an_empty_workspace_points_to_the_traces_page(visit: Visit) -> None:
    assert "There are no traces yet" in texts(visit(PAGE))


def test_changes_are_against_the_chosen_baseline_with_signs(visit: Visit, workspace: Workspace) -> None:
    for turns in (8, 14):
        for policy in ("base", "sliding-window:2"):
            replay(long_trace(turns, trace_id=f"t-{turns}"), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "sliding-window:2"])  # type: ignore[arg-type]
    assert not app.exception
    assert "n = 2 traces" in texts(app)
    frame = next(frame.value for frame in app.dataframe if "Total vs baseline" in frame.value.columns)
    assert frame["Total vs baseline"].iloc[0] == "="
    assert frame["Total vs baseline"].iloc[1].startswith("▼ -")
    app.segmented_control(key="baseline").set_value("sliding-window:2").run()
    frame = next(frame.value for frame in app.dataframe if "Total vs baseline" in frame.value.columns)
    assert frame["Total vs baseline"].iloc[0].startswith("▲ +")


def test_what_needs_no_model_is_replayed_at_once_and_the_rest_can_be_started(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(3), two=chat(4))
    first = workspace.trace_rows()[0]["trace_id"]
    replay(first, "base", workspace)
    app = visit(PAGE, policies=["base", "pamer"])  # type: ignore[arg-type]
    assert "Replay the missing 2 runs" in {button.label for button in app.button}
    assert "loads SmolLM2-135M-Instruct and all-MiniLM-L6-v2 and takes about" in texts(app)
    assert "n = 2 traces" in texts(app)


def test_many_missing_turns_wait_for_the_button(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.ui.growth.view.AT_ONCE", 2)
    put(workspace, one=chat(3), two=chat(4))
    replay(workspace.trace_rows()[0]["trace_id"], "base", workspace)
    app = visit(PAGE, policies=["base"])  # type: ignore[arg-type]
    assert "Replay the missing 1 run" in {button.label for button in app.button}
    assert "**base** on 1 trace. Doing so loads no model and takes about 1 s (from the last runs here)" in texts(app)
    assert "n = 1 of 2 chosen traces" in texts(app)


def test_own_prices_give_each_policy_its_cost(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(3))
    write_prices(workspace.path / FILE, PriceTable("EUR", {"default": Price(1.0, 2.0, 0.1)}))
    app = visit(PAGE, policies=["base"])  # type: ignore[arg-type]
    frame = next(frame.value for frame in app.dataframe if "Total vs baseline" in frame.value.columns)
    assert frame["Cost"].iloc[0].endswith("EUR") and frame["Cost vs baseline"].iloc[0] == "="


def test_traces_that_are_left_out_are_named_with_the_way_to_see_them(visit: Visit, workspace: Workspace) -> None:
    import_demo(workspace)
    demo = min(workspace.trace_rows(), key=lambda row: int(row["turns"]))["trace_id"]
    workspace.add_traces([long_trace(5, trace_id="t-own")], estimated())
    replay(demo, "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "pamer"], traces=f"{demo},t-own")  # type: ignore[arg-type]
    said = texts(app)
    assert "1 trace left out" in said and "` t-own `" in said and "switch off “Only traces that every policy has”" in said
    assert "n = 1 of 2 chosen traces" in said and ":gray-badge[demo]" in said and "Demo data." in said
    app.toggle(key="common").set_value(False).run()
    assert "left out" not in texts(app) and "n = 2 traces" in texts(app) and "1 of 2 traces is demo data" in texts(app)
    assert "Policies stand on different traces here" in texts(app)


def test_how_tokens_were_counted_is_the_runs_word_not_the_traces(visit: Visit, workspace: Workspace) -> None:
    workspace.add_traces([long_trace(5, trace_id="t-own")], estimated())
    replay("t-own", "base", workspace, ReplayOptions(device="cpu", parts=PARTS))
    (head,) = RunStore(workspace).heads()
    assert head.tokens_kind == "measured"
    said = texts(visit(PAGE, policies=["base"]))  # type: ignore[arg-type]
    assert counted_with(head.tokens_kind, head.tokenizer) in said and "characters/4" not in said


def test_what_is_cut_is_said(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.ui.growth.table.MOST_TRACES", 1)
    monkeypatch.setattr("pamer_lab.ui.growth.view.MOST_PAIRS", 1)
    monkeypatch.setattr("pamer_lab.figures.growth.MOST_LINES", 2)
    for turns in (4, 6):
        for policy in ("base", "sliding-window:2"):
            replay(long_trace(turns, trace_id=f"t-{turns}"), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "sliding-window:2"], lines="true")  # type: ignore[arg-type]
    app.session_state["divergence"] = True
    app.run()
    said = texts(app)
    assert "Evidence is read for at most 1 traces at once; choose fewer" in said
    assert "Thin lines are 1 of 2 traces" in said
    assert "The first 1 of 2 pairs" in said


def test_more_evidence_is_good_and_more_tokens_are_not() -> None:
    assert good_or_bad(EVIDENCE_CHANGE, "▲ +3.0 points") == "good" == good_or_bad("Cost vs baseline", "▼ -3.0 %")
    assert good_or_bad(EVIDENCE_CHANGE, "▼ -3.0 points") == "bad" == good_or_bad("Total vs baseline", "▲ +3.0 %")


def test_a_link_with_a_missing_trace_follows_the_readers_choice(visit: Visit, workspace: Workspace) -> None:
    for turns in (3, 4):
        replay(long_trace(turns, trace_id=f"t-{turns}"), "base", workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base"], traces="t-gone,t-3")  # type: ignore[arg-type]
    assert "t-gone" in app.warning[0].value and "n = 1 trace" in texts(app)
    app.multiselect(key="traces").set_value(["t-3", "t-4"]).run()
    assert app.query_params["traces"] in ("t-3,t-4", ["t-3,t-4"]) and not app.warning


def test_links_to_both_sides_stand_beside_the_page_and_keep_the_plus(visit: Visit, workspace: Workspace) -> None:
    for policy in ("base", "pamer+:minimum=60:retained=1"):
        replay(long_trace(9, trace_id="t-9"), policy, workspace, ReplayOptions(device="cpu", parts=PARTS))
    app = visit(PAGE, policies=["base", "pamer+:minimum=60:retained=1"])  # type: ignore[arg-type]
    app.session_state["divergence"] = True
    app.run()
    frame = next(frame.value for frame in app.dataframe if "Policy's turn" in frame.value.columns)
    link = urlsplit(frame["Policy's turn"].iloc[0])
    assert link.path == "replay" and parse_qs(link.query)["policy"] == ["pamer+:minimum=60:retained=1"]


def test_a_policy_that_cannot_be_replayed_leaves_the_stored_runs_on_the_page(
    visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(workspace, run=chat(5))
    replay(workspace.trace_rows()[0]["trace_id"], "base", workspace)

    def full(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr("pamer_lab.ui.shared.run_form.replay", full)
    app = visit(PAGE, policies=["base", "sliding-window:5"])  # type: ignore[arg-type]
    assert not app.error
    assert "the disk is full" in app.warning[0].value
    assert "How full is the context on average, turn by turn?" in texts(app)
