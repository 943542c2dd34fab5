"""The Live page: nothing recorded yet, a session with its turns, and what a reviewer may not do."""

from collections.abc import Callable

import pytest

from pamer_lab.factory import Parts
from pamer_lab.live.publish import publish
from pamer_lab.live.serve import announced
from pamer_lab.policies.registry import live_policies
from pamer_lab.reviewer_mode import READONLY_VARIABLE
from pamer_lab.ui.live import view
from pamer_lab.ui.live.sessions import ORDER, PICKED
from tests.live.conftest import Agent, Bench, started
from tests.pages.conftest import Files, Visit, opened, says

__all__ = ["started"]


def test_an_empty_workspace_says_how_to_start_a_proxy(visit: Visit) -> None:
    app = visit("pages/live.py")
    assert not app.exception and not app.error
    assert "pamer-lab serve" in app.code[0].value


def test_a_session_shows_its_turns_its_chart_and_its_fallbacks(visit: Visit, started: Callable[..., Bench], files: Files) -> None:
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
        saved = opened(files, "live-context.csv")
        assert saved["Turn"].tolist() == list(rows["Turn"]) and saved["Sent → seen"].tolist() == list(rows["Sent → seen"])
        assert set(saved.columns) >= {"client_tokens", "model_tokens", "tokenizer", "tokens_kind"}
        assert any("429" in error.value for error in app.error)
        assert app.selectbox(key=PICKED).value == bench.record.session
        assert [button.disabled for button in app.button if button.key == "live-pause"] == [True]  # not by the printed link


def test_a_client_without_the_token_presses_a_disabled_button_in_vain(visit: Visit, started: Callable[..., Bench]) -> None:
    bench = started("sliding-window:2", gate=False, parts=Parts())
    Agent(bench).step()
    with announced(bench.workspace, bench.live, int(bench.url.rsplit(":", 1)[1])):
        app = visit("pages/live.py")
        app.button(key="live-pause")._value = True  # a browser would not, another program may
        app.run()
        assert not app.exception and bench.summary["paused"] is False


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


def test_a_link_opens_the_session_that_it_names_and_the_address_names_the_open_one(visit: Visit, started: Callable[..., Bench]) -> None:
    bench = started("base", parts=Parts())
    for name, turns in (("paintings", 3), ("statues", 1)):
        agent = Agent(bench, task=name, x_session_id=name)
        for _ in range(turns):
            agent.step()
    app = visit("pages/live.py", session="paintings")
    assert not app.exception and not app.warning
    assert app.selectbox(key=PICKED).value == "paintings" and len(app.dataframe[0].value) == 3
    app.selectbox(key=PICKED).select("statues").run()
    assert app.query_params["session"] == "statues" and len(app.dataframe[0].value) == 1
    absent = visit("pages/live.py", session="nobody`*<b>")
    assert len(absent.warning) == 1 and absent.query_params["session"] == absent.selectbox(key=PICKED).value


def test_a_refused_policy_is_named_until_the_next_action_and_all_policies_are_named_after_a_switch(
    visit: Visit, started: Callable[..., Bench], files: Files, came_by_the_link: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "live_policies", lambda: [*live_policies(), "none"])  # AppTest types no policy, it picks a listed one
    bench = started("sliding-window:2", gate=False, parts=Parts())
    agent = Agent(bench, x_session_id="rooms")
    agent.step()
    with announced(bench.workspace, bench.live, int(bench.url.rsplit(":", 1)[1])):
        app = visit("pages/live.py")
        key = f"live-policy-rooms-{bench.record.policy}"
        app.selectbox(key=key).select("none").run().button(key="live-switch").click().run()
        refused = [error.value for error in app.error]
        assert len(refused) == 1
        assert [error.value for error in app.run().error] == refused  # as after a look by itself
        app.selectbox(key=key).select("base").run().button(key="live-switch").click().run()
        assert not app.error and view.REFUSED not in app.session_state
        agent.step()
        app.run()
        both = ["sliding-window:2", "base"]
        assert bench.summary["policies"] == both and ORDER.join(both) in app.selectbox(key=PICKED).options[0]
        assert says(app, *both)
        assert opened(files, "live-context.csv")["Policy"].tolist() == both[::-1]
