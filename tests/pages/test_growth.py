"""The context growth page: a fresh install, deltas against a baseline, what is missing."""

import pytest

from pamer_lab.replay.engine import ReplayOptions, replay
from pamer_lab.replay.prices import FILE, Price, PriceTable, write_prices
from pamer_lab.workspace import Workspace
from tests.pages.conftest import Visit, chat, put, texts
from tests.replay.making import PARTS, long_trace

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
    assert "n = 2 traces" in texts(app)


def test_many_missing_turns_wait_for_the_button(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pamer_lab.ui.growth_view.AT_ONCE", 2)
    put(workspace, one=chat(3), two=chat(4))
    replay(workspace.trace_rows()[0]["trace_id"], "base", workspace)
    app = visit(PAGE, policies=["base"])  # type: ignore[arg-type]
    assert "Replay the missing 1 run" in {button.label for button in app.button}
    assert "n = 1 trace" in texts(app)


def test_own_prices_give_each_policy_its_cost(visit: Visit, workspace: Workspace) -> None:
    put(workspace, one=chat(3))
    write_prices(workspace.path / FILE, PriceTable("EUR", {"default": Price(1.0, 2.0, 0.1)}))
    app = visit(PAGE, policies=["base"])  # type: ignore[arg-type]
    frame = next(frame.value for frame in app.dataframe if "Total vs baseline" in frame.value.columns)
    assert frame["Cost"].iloc[0].endswith("EUR")
