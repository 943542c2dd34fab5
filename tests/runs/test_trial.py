"""Trying a policy for a moment: what a clock shows becomes the time of all turns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pamer_lab.factory import Factory
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs import commits
from pamer_lab.runs import estimate as estimates
from pamer_lab.runs.commits import KEPT, remember_commits, usual_commit
from pamer_lab.runs.engine import replay
from pamer_lab.runs.estimate import Estimator, estimate
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.trial import FILE, Taken, evened, trials, try_policies, turn_seconds
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


def test_trials_share_the_time_that_some_of_them_waited_for_a_processor() -> None:
    # Of three that worked for 1, 1 and 2 s, the first was interrupted for 4 s: a second of work takes two.
    taken = [Taken(5, 1), Taken(1, 1), Taken(2, 2)]
    assert [one.wall * load for one, load in zip(taken, evened(taken), strict=True)] == [2, 2, 4]
    assert evened([Taken(1, 1), Taken(2, 2)]) == [1, 1] and evened([Taken(0, 0)]) == [1] and evened([]) == []


def test_storing_counts_once_for_a_run_however_many_turns_it_has(workspace: Workspace) -> None:
    trace = long_trace(6, trace_id="t-6")
    workspace.add_traces([trace], estimated())
    (trial,) = try_policies([(BASE, "t-6")], factory(workspace))
    assert trial.commits == 2 and trial.commit > 0
    asked = Estimator(factory(workspace))
    cost = asked.costs({"base": ["t-6"]})["base", "t-6"]
    assert cost.seconds == pytest.approx(6 * trial.seconds + 2 * trial.commit)


def test_a_commit_takes_what_the_newest_ones_of_the_workspace_took(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    (trial,) = try_policies([(BASE, "t-6")], factory(workspace))
    remember_commits(workspace.path, [1.0] * KEPT)
    remember_commits(workspace.path, [3.0, 90.0, 3.0] * (KEPT // 3))
    cost = Estimator(factory(workspace)).costs({"base": ["t-6"]})["base", "t-6"]
    assert cost.store_seconds == 2 * 3.0
    assert cost.seconds == pytest.approx(6 * trial.seconds + 6.0)


def test_a_run_remembers_its_commits(workspace: Workspace) -> None:
    assert usual_commit(workspace.path) == 0
    replay(long_trace(6, trace_id="t-6"), "base", workspace)
    assert usual_commit(workspace.path) > 0
    (workspace.path / commits.FILE).write_text("{}")
    assert usual_commit(workspace.path) == 0


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


def test_texts_of_turns_are_commits_of_their_own_and_a_commit_is_the_same_for_all_policies(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(30, trace_id="t-30")], estimated())
    found = try_policies([(BASE, "t-30"), (parse_policy("periodic-summary:5"), "t-30")], factory(workspace))
    assert [trial.commits for trial in found] == [2, 3]
    assert len({trial.commit for trial in found}) == 1


def test_what_cannot_be_tried_is_not_remembered(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    assert try_policies([(parse_policy("acm"), "t-6")], factory(workspace)) == []  # the trace has none of the calls that it replays
    assert not Path(workspace.path / FILE).exists()
    (workspace.path / FILE).write_text("[1]")
    assert trials(workspace.path) == []
