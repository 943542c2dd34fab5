"""Trying a policy for a moment: what a clock shows becomes the time of all turns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pamer_lab.factory import Factory
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs import estimate as estimates
from pamer_lab.runs import trial as trial_module
from pamer_lab.runs.engine import replay
from pamer_lab.runs.estimate import Estimator, estimate
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.trial import FILE, commit_seconds, trials, try_policies, turn_seconds
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
    found, turns = turn_seconds(timeline_of(long_trace(5)), BASE, resources_of(), 60, clock(0, 1, 1, 1, 1, 6, 0))
    assert len(turns) == 5
    assert found == pytest.approx(10 / 5)


def test_turns_after_a_trial_count_like_its_newest() -> None:
    # Turns take 1, 1, 3, 3 s, then the trial's 3 s are over two and a half times; the other 96 are expected to take 3 s each.
    found, _ = turn_seconds(timeline_of(long_trace(100)), BASE, resources_of(), 3, clock(0, 1, 1, 3, 3, 0))
    assert found == pytest.approx((8 + 96 * 3) / 100)


def test_packing_the_turns_counts_too() -> None:
    found, _ = turn_seconds(timeline_of(long_trace(4)), BASE, resources_of(), 60, clock(0, 1, 1, 1, 1, 0, 2))
    assert found == pytest.approx(1 + 2 / 4)


@pytest.mark.parametrize(("turns", "tried"), [(8, 4), (20, 6), (1000, 8)])
def test_a_trial_is_longer_where_it_is_a_small_part_of_the_run(turns: int, tried: int) -> None:
    _, found = turn_seconds(timeline_of(long_trace(turns)), BASE, resources_of(), 3, clock(0, 1))
    assert len(found) == tried


def test_what_a_policy_needs_less_of_later_is_not_expected_for_all_turns() -> None:
    # Forty turns of 1 s, then 0.1 s each: the second half of the trial would say 0.55 s.
    found, turns = turn_seconds(timeline_of(long_trace(200)), BASE, resources_of(), 41.95, clock(0, *[1] * 40, 0.1))
    assert len(turns) == 60 and found == pytest.approx((42 + 140 * 0.1) / 200, rel=0.01)


def test_storing_counts_once_for_a_run_however_many_turns_it_has(workspace: Workspace) -> None:
    trace = long_trace(6, trace_id="t-6")
    workspace.add_traces([trace], estimated())
    (trial,) = try_policies([(BASE, "t-6")], factory(workspace))
    assert trial.storing > 0
    asked = Estimator(factory(workspace))
    cost = asked.costs({"base": ["t-6"]})["base", "t-6"]
    assert cost.seconds == pytest.approx(6 * trial.seconds + trial.storing)
    assert commit_seconds(list(replay(trace, "base").turns), clock(0, 7, 0, 5, 0, 6)) == 5


def factory(workspace: Workspace) -> Factory:
    return Factory(load_profile("embedded"), workspace)


def test_a_trial_is_remembered_and_stores_no_run(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6"), long_trace(12, trace_id="t-12")], estimated())
    first = estimate({"sliding-window:2": ["t-6", "t-12"]}, factory(workspace))
    assert first.basis == "measured" and not RunStore(workspace).heads()
    assert [(trial.policy, trial.trace_id) for trial in trials(workspace.path)] == [("sliding-window:2", "t-12")]
    tried: list[object] = []
    monkeypatch.setattr(estimates, "try_policies", lambda waiting, factory: tried.extend(waiting) or ())
    assert estimate({"sliding-window:2": ["t-6", "t-12"]}, factory(workspace)) == first
    assert not tried


def test_policies_that_write_summaries_come_last_and_find_what_those_before_them_have_written(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.add_traces([long_trace(30, trace_id="t-30")], estimated())
    written: list[str] = []
    real = ExtractiveSummariser.summarise
    monkeypatch.setattr(ExtractiveSummariser, "summarise", lambda *given: written.append(given[1]) or real(*given))
    summaries = (parse_policy("periodic-summary:5"), "t-30")
    assert [trial.policy for trial in try_policies([summaries, (BASE, "t-30")], factory(workspace))] == ["base", "periodic-summary:5"]
    once = len(written)
    try_policies([summaries, summaries], factory(workspace))
    assert once and len(written) == 2 * once, "the second of two finds the summaries of the first; a later trial finds none"


def test_storing_is_tried_once_for_all_policies(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    stored: list[int] = []
    monkeypatch.setattr(trial_module, "commit_seconds", lambda turns: stored.append(len(turns)) or 3.0)
    found = try_policies([(BASE, "t-6"), (parse_policy("sliding-window:2"), "t-6")], factory(workspace))
    assert [trial.storing for trial in found] == [3.0, 3.0] and stored == [6]


def test_what_cannot_be_tried_is_not_remembered(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    assert try_policies([(parse_policy("acm"), "t-6")], factory(workspace)) == []  # the trace has none of the calls that it replays
    assert not Path(workspace.path / FILE).exists()
    (workspace.path / FILE).write_text("[1]")
    assert trials(workspace.path) == []
