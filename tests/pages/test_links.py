"""Links from anywhere: numbers no page has, and requests that nobody clicked."""

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from tests.pages.conftest import APP, Visit, chat, put

LONG = "9" * 5_000


@pytest.mark.parametrize(
    ("page", "name", "number"),
    [
        ("trace", "block", LONG),
        ("trace", "block", "1e999"),
        ("trace", "block", "-" + LONG),
        ("replay", "turn", LONG),
        ("replay", "least", LONG),
        ("replay", "horizon", LONG),
        ("contexts", "point", LONG),
    ],
)
def test_a_number_that_is_too_long_is_ignored_with_a_sentence(visit: Visit, page: str, name: str, number: str) -> None:
    app = visit(f"pages/{page}.py", **{name: number})
    assert not app.exception and any(name in warning.value for warning in app.warning)


def test_a_long_number_under_the_name_of_a_remembered_choice_is_ignored(visit: Visit) -> None:
    assert not visit("pages/contexts.py", **{"point:": LONG}).exception


def arrived(page: str, **parameters: str) -> AppTest:
    """A page that is the first of its session, as after a click on a link in a mail."""
    app = AppTest.from_file(str(APP.parent / "pages" / page), default_timeout=300)
    app.query_params.update(parameters)
    app.session_state["routed"] = True
    return app.run()


@pytest.mark.usefixtures("no_demo")
def test_a_link_writes_no_run_before_a_click(workspace: Workspace) -> None:
    trace_id = put(workspace, short=chat(4)).traces[0]["trace_id"]
    app = arrived("replay.py", trace=trace_id, policies="sliding-window:3")
    assert not app.exception and RunStore(workspace).heads() == []
    app.run()
    assert RunStore(workspace).heads() == [], "a run that nobody clicked asks for the same"
    app.selectbox(key="device").set_value("cpu").run()
    assert RunStore(workspace).heads() == [], "nothing was chosen that a link did not ask for"
    assert not arrived("growth.py", policies="sliding-window:3").exception
    assert RunStore(workspace).heads() == []


@pytest.mark.usefixtures("no_demo")
def test_a_page_reached_by_a_click_replays_at_once(visit: Visit, workspace: Workspace) -> None:
    trace_id = put(workspace, short=chat(4)).traces[0]["trace_id"]
    app = visit("pages/replay.py", trace=trace_id, policies="sliding-window:3")
    assert not app.exception and [head.policy for head in RunStore(workspace).heads()] == ["sliding-window:3"]


@pytest.mark.usefixtures("no_demo")
def test_an_address_without_parameters_opens_with_results(workspace: Workspace) -> None:
    put(workspace, short=chat(4))
    assert not arrived("growth.py").exception
    assert {head.policy for head in RunStore(workspace).heads()} == {"base", "sliding-window:5", "periodic-summary:5"}
