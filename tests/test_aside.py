"""Work beside the page: its result, its errors, and its limit."""

from pathlib import Path

import pytest

from pamer_lab import aside
from pamer_lab.aside import TookTooLong, ask, function_of
from pamer_lab.errors import LabError
from pamer_lab.runs.evidence import uses
from pamer_lab.ui.shared.runs import FoundUses
from pamer_lab.workspace import Workspace
from tests.runs.making import estimated, timeline_of
from tests.runs.test_evidence import hand_made


@pytest.fixture(autouse=True)
def _none_left() -> object:
    yield
    while aside.idle:
        aside.idle.pop().kill()


def test_a_trace_is_searched_in_another_process_with_the_same_result(workspace: Workspace) -> None:
    trace = hand_made()
    workspace.add_traces([trace], estimated())
    found = ask("evidence", [str(workspace.path), trace.trace_id, "embedded"], FoundUses, seconds=100, what="the search")
    assert found.uses == list(uses(timeline_of(trace))) and found.stopped is None
    with pytest.raises(LabError, match="t-none"):
        ask("evidence", [str(workspace.path), "t-none", "embedded"], FoundUses, seconds=100, what="the search")
    assert len(aside.idle) == 1, "the process serves the next call too"


def test_a_call_that_takes_too_long_is_ended_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(TookTooLong, match="the search"):
        ask("evidence", [str(tmp_path), "t", "embedded"], FoundUses, seconds=0.0, what="the search")
    assert aside.idle == []


def test_every_call_names_a_function_and_nothing_else_can_be_called() -> None:
    assert all(callable(function_of(name)) for name in aside.CALLS)
    with pytest.raises(KeyError):
        function_of("os:system")
