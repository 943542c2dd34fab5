"""The Live page: nothing recorded yet, a session with its turns, and what a reviewer may not do."""

from collections.abc import Callable

import pytest

from pamer_lab.factory import Parts
from pamer_lab.live.publish import publish
from pamer_lab.live.serve import announced
from pamer_lab.reviewer_mode import READONLY_VARIABLE
from tests.live.conftest import Agent, Bench, started
from tests.pages.conftest import Visit

__all__ = ["started"]


def test_an_empty_workspace_says_how_to_start_a_proxy(visit: Visit) -> None:
    app = visit("pages/live.py")
    assert not app.exception and not app.error
    assert "pamer-lab serve" in app.code[0].value


def test_a_session_shows_its_turns_its_chart_and_its_fallbacks(visit: Visit, started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False, parts=Parts())
    agent = Agent(bench, x_session_id="rooms")
    for _ in range(5):
        agent.step()
    bench.post("chat", agent.body, x_session_id="rooms", x_fake="status=429")
    publish(bench.workspace, bench.record)
    with announced(bench.workspace, bench.live, int(bench.url.rsplit(":", 1)[1])):
        app = visit("pages/live.py")
        assert not app.exception
        rows = app.dataframe[0].value
        assert list(rows["Turn"]) == [5, 4, 3, 2, 1, 0]
        assert any("429" in error.value for error in app.error)
        assert app.selectbox(key="session").value == bench.record.session
        assert [button.disabled for button in app.button if button.key == "live-pause"] == [True]  # not by the printed link


def test_a_browser_with_the_token_pauses_the_session(visit: Visit, started: Callable[..., Bench], came_by_the_link: None) -> None:
    bench = started("sliding-window:2", gate=False, parts=Parts())
    Agent(bench).step()
    with announced(bench.workspace, bench.live, int(bench.url.rsplit(":", 1)[1])):
        app = visit("pages/live.py")
        app.button(key="live-pause").click().run()
        assert not app.exception and not app.error
        assert bench.summary["paused"] is True


def test_a_reviewer_reads_and_controls_nothing(visit: Visit, started: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started("base", parts=Parts())
    Agent(bench).step()
    publish(bench.workspace, bench.record)
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    app = visit("pages/live.py")
    assert not app.exception and not app.error
    assert [button.key for button in app.button if button.key in ("live-pause", "live-switch")] == []
