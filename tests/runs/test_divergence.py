"""First divergence, and events the source recorded."""

import re

import pytest

from pamer_lab.errors import InputError
from pamer_lab.runs.divergence import first_divergence
from pamer_lab.runs.engine import replay
from pamer_lab.runs.recorded import recorded_events
from pamer_lab.trajectory.values import Event
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace


def test_the_first_turn_that_differs_is_named_with_its_difference(workspace: Workspace) -> None:
    trace = long_trace(7)
    base, window = replay(trace, "base", workspace), replay(trace, "sliding-window:3", workspace)
    found = first_divergence(base, window)
    assert found.t == 4 and re.search(r"^base .*sliding-window:3 .* 4$", found.sentence)
    assert found.only_first == ({"kind": "block", "block": 0},) and found.only_second == ()
    summary = first_divergence(window, replay(trace, "periodic-summary:3", workspace))
    assert summary.t == 4 and [row["kind"] for row in summary.only_second] == ["summary"]
    assert [row["block"] for row in summary.only_first] == [1, 2]


def test_no_divergence_is_stated(workspace: Workspace) -> None:
    trace = long_trace(4)
    found = first_divergence(replay(trace, "base", workspace), replay(trace, "sliding-window:9", workspace))
    assert found.t is None and re.search(r"^base .*sliding-window:9 .* 4 ", found.sentence)


def test_runs_of_different_traces_are_refused(workspace: Workspace) -> None:
    one, other = (replay(long_trace(2, trace_id=name), "base", workspace) for name in ("t-1", "t-2"))
    with pytest.raises(InputError, match=f"{one.run_id}.*{other.run_id}"):
        first_divergence(one, other)


def test_recorded_compactions_are_placed_on_the_turn_they_precede() -> None:
    events = (Event("compaction", 2), Event("compaction", 4, "summary", 900, 100), Event("context_edit", 5), Event("note", 8))
    found = recorded_events(long_trace(3, events=events))
    assert [(event["t"], event["kind"]) for event in found] == [(0, "compaction"), (1, "compaction"), (2, "context_edit"), (3, "note")]
    assert found[1]["tokens_before"] == 900 and found[1]["tokens_kind"] == "recorded"
