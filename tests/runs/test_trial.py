"""Trying a policy for a moment: what a clock shows becomes the time of all turns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pamer_lab.factory import Factory
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs import commits, known
from pamer_lab.runs import estimate as estimates
from pamer_lab.runs import trial as trial_module
from pamer_lab.runs.commits import KEPT, remember_commits, usual_commit
from pamer_lab.runs.engine import replay
from pamer_lab.runs.estimate import Estimator, estimate
from pamer_lab.runs.known import Known, most_like
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.trial import FILE, Taken, Trial, evened, trials, try_policies, turn_seconds
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
    (trial,) = try_policies([(BASE, "t-6")], [], factory(workspace))
    assert trial.commits == 1 and trial.commit > 0
    asked = Estimator(factory(workspace))
    cost = asked.costs({"base": ["t-6"]})["base", "t-6"]
    assert cost.seconds == pytest.approx(6 * trial.seconds + trial.commit)


def test_a_commit_takes_what_the_newest_ones_of_the_workspace_took(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    (trial,) = try_policies([(BASE, "t-6")], [], factory(workspace))
    remember_commits(workspace.path, [1.0] * KEPT)
    remember_commits(workspace.path, [3.0, 90.0, 3.0] * (KEPT // 3))
    cost = Estimator(factory(workspace)).costs({"base": ["t-6"]})["base", "t-6"]
    assert cost.store_seconds == 3.0
    assert cost.seconds == pytest.approx(6 * trial.seconds + 3.0)


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
    found = [(trial.policy, trial.trace_id) for trial in trials(workspace.path)]
    assert found == [("sliding-window:2", "t-12"), ("sliding-window:2", "t-6")], "the longest first"
    tried: list[object] = []
    monkeypatch.setattr(estimates, "try_policies", lambda waiting, others, factory: tried.extend([*waiting, *others]) or ())
    assert estimate({"sliding-window:2": ["t-6", "t-12"]}, factory(workspace)) == first
    assert not tried


def test_other_traces_are_tried_while_there_is_time(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.add_traces([long_trace(size, trace_id=f"t-{size}") for size in (5, 6, 12)], estimated())
    monkeypatch.setattr(trial_module, "MOST", 0.0)
    estimate({"base": ["t-5", "t-6", "t-12"], "sliding-window:2": ["t-5", "t-6"]}, factory(workspace))
    tried = {(trial.policy, trial.trace_id) for trial in trials(workspace.path)}
    assert tried == {("base", "t-12"), ("sliding-window:2", "t-6")}


def test_a_run_starts_with_the_counts_and_summaries_that_it_would_have_without_a_trial(workspace: Workspace) -> None:
    asked = factory(workspace)
    workspace.add_traces([long_trace(30, trace_id="t-30")], asked.tokens)
    before = asked.tokens.apart()
    try_policies([(parse_policy("periodic-summary:5"), "t-30")], [], asked)
    assert vars(asked.tokens) == vars(before)


def test_an_old_trial_is_corrected_by_the_present_load(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    (trial,) = try_policies([(BASE, "t-6")], [], factory(workspace))
    monkeypatch.setattr(estimates, "stretch", lambda: 3.0 * trial.stretch)
    size = workspace.trace_sizes(["t-6"])["t-6"]

    def seconds() -> float:
        return Estimator(factory(workspace)).turn_seconds(BASE, "t-6", size)

    assert seconds() == pytest.approx(trial.seconds), "one of this minute knows the load"
    monkeypatch.setattr(known, "RECENT", -1.0)
    assert seconds() == pytest.approx(3 * trial.seconds)


def test_what_is_most_like_a_run() -> None:
    same, near, far, other = (
        Known("sliding-window:2", "t", 50, 1.0),
        Known("sliding-window:2", "t-near", 100, 1.0),
        Known("sliding-window:2", "t-far", 900, 1.0),
        Known("sliding-window:3", "t", 100, 1.0),
    )
    policy = parse_policy("sliding-window:2")
    assert most_like([same, near, far, other], policy, "t", 100) == same
    assert most_like([near, far, other], policy, "t", 100) == near
    assert most_like([near, far, other], policy, "t", 800) == far
    assert most_like([other], policy, "t", 100) == other
    assert most_like([other], BASE, "t", 100) is None


def test_time_is_divided_among_trials_by_what_is_known_of_the_policies() -> None:
    window = parse_policy("sliding-window:2")
    pairs = [(BASE, "t-1"), (window, "t-1"), (parse_policy("forget-half"), "t-1")]
    tried = [Trial("embedded", "base", "t", 1.0, 50), Trial("embedded", window.name, "t", 3.0, 50)]
    assert trial_module._weights(pairs, tried) == [1.0, 3.0, 2.0] and trial_module._weights(pairs, []) == [1.0, 1.0, 1.0]


def test_policies_that_write_summaries_come_last_and_find_what_those_before_them_have_written(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.add_traces([long_trace(30, trace_id="t-30")], estimated())
    written: list[str] = []
    real = ExtractiveSummariser.summarise
    monkeypatch.setattr(ExtractiveSummariser, "summarise", lambda *given: written.append(given[1]) or real(*given))
    summaries = (parse_policy("periodic-summary:5"), "t-30")
    assert [trial.policy for trial in try_policies([summaries, (BASE, "t-30")], [], factory(workspace))] == ["base", "periodic-summary:5"]
    once = len(written)
    try_policies([summaries, summaries], [], factory(workspace))
    assert once and len(written) == 2 * once, "the second of two finds the summaries of the first; a later trial finds none"


def test_texts_of_turns_are_commits_of_their_own_and_a_commit_is_the_same_for_all_policies(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(30, trace_id="t-30")], estimated())
    found = try_policies([(BASE, "t-30"), (parse_policy("periodic-summary:5"), "t-30")], [], factory(workspace))
    assert [trial.commits for trial in found] == [1, 2]
    assert len({trial.commit for trial in found}) == 1


def test_what_cannot_be_tried_is_not_remembered(workspace: Workspace) -> None:
    workspace.add_traces([long_trace(6, trace_id="t-6")], estimated())
    assert try_policies([(parse_policy("acm"), "t-6")], [], factory(workspace)) == []  # the trace has none of the calls that it replays
    assert not Path(workspace.path / FILE).exists()
    (workspace.path / FILE).write_text("[1]")
    assert trials(workspace.path) == []
