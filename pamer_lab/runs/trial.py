"""How long a policy's turns take on this machine, by trying it: the first turns of a trace, for a moment, in memory.

For policies that need no model. A trial works as a run does, packing its turns for the store, but stores nothing of the run; what it found
is kept in the workspace's `trials.json`, so that asking again costs nothing and a run can be compared with what was said before it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from pamer_lab.errors import LabError
from pamer_lab.factory import Factory
from pamer_lab.memory.summary import CachedSummariser
from pamer_lab.opening import read_file
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.policies.resources import RunResources
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.store import packed
from pamer_lab.runs.timeline import Timeline, stored_timeline
from pamer_lab.runs.turns import replay_turns
from pamer_lab.runs.values import Turn
from pamer_lab.storage.files import write_whole

FILE = "trials.json"
KEPT = 500
"""Trials that are remembered; the oldest are forgotten."""
MOST = 1.0
"""Seconds that all trials of one estimate may take together, about."""
LEAST_TURNS = 4
"""Turns from which a trial means something."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Trial:
    """What was found, and for which replay."""

    profile: str
    policy: str
    trace_id: str
    seconds: float
    """Of a turn, as the mean over the complete trace."""
    tokens: float
    """Of a block, as the mean over the complete trace."""


def try_policy(policy: Policy, trace_id: str, factory: Factory, seconds: float) -> Trial | None:
    """Replay a trace's first turns for so many seconds and remember what all would take; None where the policy does not run."""
    try:
        line = stored_timeline(factory.workspace.trace(trace_id), factory.profile.name, factory.workspace)
        if line.turns < 1 or (isinstance(policy, PlainPolicy) and policy.refuses(line.trace)):
            return None
        found = turn_seconds(line, policy, _apart(factory), seconds)
    except LabError:
        return None
    trial = Trial(factory.profile.name, policy.name, trace_id, found, line.cumulative[-1] / line.turns)
    _remember(factory.workspace.path, trial)
    return trial


def turn_seconds(line: Timeline, policy: Policy, resources: RunResources, seconds: float, clock: Clock = time.perf_counter) -> float:
    """Mean seconds of a turn over the complete trace.

    A trial that reaches the end has measured it. Otherwise the turns after it count like its second half: many policies do more as a
    trace grows, up to their budgets.
    """
    marks, turns = [began := clock()], list[Turn]()
    for turn in replay_turns(line, policy, resources):
        turns.append(turn)
        marks.append(clock())
        if len(turns) >= LEAST_TURNS and marks[-1] - began > seconds:
            break
    packing = clock()
    packed("", turns)
    storing = (clock() - packing) / len(turns)
    done, half = len(turns), len(turns) // 2
    later = (marks[-1] - marks[half]) / (done - half)
    return (marks[-1] - began + (line.turns - done) * later) / line.turns + storing


def _apart(factory: Factory) -> RunResources:
    """The factory's parts with summaries of its own, so that neither the trial nor the run finds what the other has written."""
    summariser = factory.summariser
    fresh = CachedSummariser(summariser.inner) if isinstance(summariser, CachedSummariser) else summariser
    return RunResources(replace(factory, parts=replace(factory.parts, summariser=fresh)), "trial")


def trials(folder: Path) -> list[Trial]:
    """What earlier trials in a workspace found, oldest first."""
    try:
        return msgspec.json.decode(read_file(folder / FILE), type=list[Trial])
    except (LabError, OSError, msgspec.MsgspecError):
        return []


def _remember(folder: Path, trial: Trial) -> None:
    """Keep what was found; a workspace that cannot be written keeps nothing."""
    if reviewer_mode():
        return
    others = [old for old in trials(folder) if (old.profile, old.policy, old.trace_id) != (trial.profile, trial.policy, trial.trace_id)]
    try:
        write_whole(folder / FILE, msgspec.json.encode([*others, trial][-KEPT:]))
    except LabError:
        return
