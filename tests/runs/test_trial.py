"""Trying a policy for a moment: what a clock shows becomes the time of all turns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs import estimate as estimates
from pamer_lab.runs.estimate import estimate
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.trial import FILE, trials, try_policy, turn_seconds
from pamer_lab.workspace import Workspace
from tests.runs.making import estimated, long_trace, resources_of, timeline_of

BASE = parse_policy("base")


def clock(*steps: float) -> Callable[[], float]:
    """Shows the first time, then moves on by each step in turn, the last one again and again."""
    now, left = 0.0, list(steps)

    def look() -> float:
        nonlocal now
        now += left.pop(0) if len(left) > 1 else left[0]
        return now

    return look


def test_a_trial_that_reaches_the_end_has_measured_every_turn() -> None:
    found = turn_seconds(timeline_of(long_trace(5)), BASE, resources_of(), 60, clock(0, 1, 1, 1, 1, 6, 0))
    assert found == pytest.approx(10 / 5)


def test_turns_after_a_trial_count_like_its_second_half() -> None:
    # Turns take 1, 1, 3, 3 s, then the trial's 7.5 s are over; the other 96 are expected to take 3 s each.
    found = turn_seconds(timeline_of(long_trace(100)), BASE, resources_of(), 7.5, clock(0, 1, 1, 3, 3, 0))
    assert found == pytest.approx((8 + 96 * 3) / 100)


def test_packing_the_turns_counts_too() -> None:
    found = turn_seconds(timeline_of(long_trace(4)), BASE, resources_of(), 60, clock(0, 1, 1, 1, 1, 0, 2))
    assert found == pytest.approx(1 + 2 / 4)


def factory(workspace: Workspace) -> Factory:
    return Factory(load_profile("embedded"), workspace)


def test_a_trial_is_remembered_and_stores_no_run(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6"), long_trace(12, trace_id="t-12")], estimated())
    first = estimate({"sliding-window:2": ["t-6", "t-12"]}, factory(workspace))
    assert first.basis == "measured" and not RunStore(workspace).heads()
    assert [(trial.policy, trial.trace_id) for trial in trials(workspace.path)] == [("sliding-window:2", "t-12")]
    monkeypatch.setattr(estimates, "try_policy", None)
    assert estimate({"sliding-window:2": ["t-6", "t-12"]}, factory(workspace)) == first


def test_what_cannot_be_tried_is_not_remembered(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    assert try_policy(parse_policy("acm"), "t-6", factory(workspace), 1) is None  # the trace has none of the calls that it replays
    assert not Path(workspace.path / FILE).exists()
    (workspace.path / FILE).write_text("[1]")
    assert trials(workspace.path) == []
