"""Replays that a page makes in its own thread end in time, and what is left can go on."""

import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.runs.store import RunStore
from pamer_lab.ui.shared import run_form
from pamer_lab.workspace import Workspace
from tests.runs.making import call, estimated, make_trace


def _page() -> None:
    from pamer_lab.runs.engine import ReplayOptions
    from pamer_lab.ui.shared.loaders import workspace
    from pamer_lab.ui.shared.run_form import replay_at_once

    replay_at_once([(str(workspace().trace_rows()[0]["trace_id"]), "sliding-window:2")], ReplayOptions(), "it")


@pytest.mark.parametrize(("seconds", "status"), [(-1.0, "cancelled"), (600.0, "done")])
def test_a_replay_stops_at_the_pages_limit(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, seconds: float, status: str) -> None:
    workspace.add_traces([make_trace([call(n, f"clue {n}", "text " * 50) for n in range(6)])], estimated())
    monkeypatch.setattr(run_form, "SECONDS_AT_ONCE", seconds)
    page = AppTest.from_function(_page, default_timeout=60).run()
    assert not page.exception and not page.warning
    (head,) = RunStore(workspace).heads()
    assert head.status == status
