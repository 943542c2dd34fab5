"""How long a policy's turns take on this machine, by trying it: the first turns of a trace, for a moment, in memory.

For policies that need no model. A trial works as a run does, packing its turns for the store, but stores nothing of the run; what it found
is kept in the workspace's `trials.json`, so that asking again costs nothing and a run can be compared with what was said before it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from pamer_lab.errors import LabError
from pamer_lab.factory import Factory
from pamer_lab.memory.summary import CachedSummariser
from pamer_lab.memory.terms import forget_lines
from pamer_lab.opening import read_file
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.policies.resources import RunResources
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.timeline import Timeline, stored_timeline
from pamer_lab.runs.turn_rows import packed
from pamer_lab.runs.turns import replay_turns
from pamer_lab.runs.values import Turn
from pamer_lab.storage.files import write_whole
from pamer_lab.trajectory.parsing import uncollected
from pamer_lab.workspace import Workspace

FILE = "trials.json"
KEPT = 500
"""Trials that are remembered; the oldest are forgotten."""
MOST = 2.0
"""Seconds that all trials of one estimate take together, about."""
ALONE = 1.0
"""Seconds that one of them takes, about."""
COMMITS = 3
"""Times that storing is tried; the shortest counts, since other programs write too."""
LONGER, SHARE = 2.5, 0.25
"""A trial goes on while it is less than this share of what the run would take, at most so many times its seconds."""
LEAST_TURNS = 4
"""Turns from which a trial means something."""
NEWEST = 20
"""Turns of a trial that the others count like, at least: policies that work every few turns do so several times in them."""

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
    storing: float = 0.0
    """Seconds of a run's first and last commit, however many turns they hold."""


def try_policies(waiting: Sequence[tuple[Policy, str]], factory: Factory) -> list[Trial]:
    """Try policies on traces one after another and remember what was found; those that do not run are left out.

    As in a batch, a policy finds what those before it have read and summarised; the batch itself finds none of it. Policies that write
    summaries come last, with the time that the others leave: they take most of it.
    """
    found: list[Trial] = []
    apart, end = _apart(factory), time.monotonic() + MOST
    with uncollected():
        for number, (policy, trace_id) in enumerate(sorted(waiting, key=lambda pair: "summariser" in pair[0].needs)):
            seconds = max(end - time.monotonic(), 0.0) / (len(waiting) - number)
            trial = try_policy(policy, trace_id, apart, min(seconds, ALONE), found[0].storing if found else None)
            found += [trial] if trial else []
    forget_lines()
    _remember(factory.workspace.path, found)
    return found


def try_policy(policy: Policy, trace_id: str, factory: Factory, seconds: float, storing: float | None = None) -> Trial | None:
    """Replay a trace's first turns for so many seconds; None where the policy does not run.

    `storing`: what an earlier trial found, so that it is measured once.
    """
    try:
        line = stored_timeline(factory.workspace.trace(trace_id), factory.profile.name, factory.workspace)
        if line.turns < 1 or (isinstance(policy, PlainPolicy) and policy.refuses(line.trace)):
            return None
        found, turns = turn_seconds(line, policy, RunResources(factory, "trial"), seconds)
        if storing is None:
            storing = 0.0 if factory.workspace.remote else commit_seconds(turns)
    except LabError:
        return None
    return Trial(factory.profile.name, policy.name, trace_id, found, line.cumulative[-1] / line.turns, storing)


def turn_seconds(
    line: Timeline, policy: Policy, resources: RunResources, seconds: float, clock: Clock = time.perf_counter
) -> tuple[float, list[Turn]]:
    """Mean seconds of a turn over the complete trace, and the turns of the trial.

    A trial that reaches the end has measured it. Otherwise the turns after it count like its newest: many policies do more as a trace
    grows, up to their budgets, and some do less behind them.
    """
    marks, turns = [began := clock()], list[Turn]()
    for turn in replay_turns(line, policy, resources):
        turns.append(turn)
        marks.append(clock())
        spent = marks[-1] - began
        if len(turns) >= LEAST_TURNS and spent > min(LONGER * seconds, max(seconds, SHARE * spent / len(turns) * line.turns)):
            break
    packing = clock()
    packed("", turns)
    packing = (clock() - packing) / len(turns)
    newest = max(len(turns) // 4, min(len(turns) // 2, NEWEST))
    later = (marks[-1] - marks[-1 - newest]) / newest if newest else spent
    return (spent + (line.turns - len(turns)) * later) / line.turns + packing, turns


def commit_seconds(turns: Sequence[Turn], clock: Clock = time.perf_counter) -> float:
    """Seconds in which a run of these turns stores its first one and the others, in a store of their own that exists already."""
    found = []
    with TemporaryDirectory(prefix="pamer-lab-", ignore_cleanup_errors=True) as folder:
        store = RunStore(Workspace(folder))
        store.add_turns("before", turns[:1])
        for number in range(COMMITS):
            began = clock()
            store.add_turns(f"trial-{number}", turns[:1])
            store.add_turns(f"trial-{number}", turns[1:])
            found.append(clock() - began)
    return min(found)


def _apart(factory: Factory) -> Factory:
    """The factory with summaries of its own, so that neither the trial nor the run finds what the other has written."""
    summariser = factory.summariser
    fresh = CachedSummariser(summariser.inner) if isinstance(summariser, CachedSummariser) else summariser
    return replace(factory, parts=replace(factory.parts, summariser=fresh))


def trials(folder: Path) -> list[Trial]:
    """What earlier trials in a workspace found, oldest first."""
    try:
        return msgspec.json.decode(read_file(folder / FILE), type=list[Trial])
    except (LabError, OSError, msgspec.MsgspecError):
        return []


def _remember(folder: Path, found: Sequence[Trial]) -> None:
    """Keep what was found; a workspace that cannot be written keeps nothing."""
    if reviewer_mode() or not found:
        return
    kept = {(trial.profile, trial.policy, trial.trace_id): trial for trial in [*trials(folder), *found]}
    try:
        write_whole(folder / FILE, msgspec.json.encode([*kept.values()][-KEPT:]))
    except LabError:
        return
