"""How long a policy's turns take on this machine, by trying it: the first turns of a trace, for a moment, in memory.

For policies that need no model. A trial works as a run does, and stores its turns in a store of its own, removed afterwards; what it found
is kept in the workspace's `trials.json`, so that asking again costs nothing and a run can be compared with what was said before it.
"""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

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
from pamer_lab.workspace import Workspace

FILE = "trials.json"
KEPT = 500
"""Trials that are remembered; the oldest are forgotten."""
MOST = 2.0
"""Seconds that all trials of one estimate take together, about: of each policy on one trace, and of them on other traces."""
LEAST = 0.02
"""Seconds of a trial on another trace; of many traces only so many are tried."""
ALONE = 1.0
"""Seconds that one of them takes, about."""
LONGER, SHARE = 2.5, 0.25
"""A trial takes at most so many times its seconds: where it reaches the end in them, or is less than this share of the run."""
LEAST_TURNS = 4
"""Turns from which a trial means something."""
NEWEST = 20
"""Turns of a trial that the others count like, at least: policies that work every few turns do so several times in them."""

Clock = Callable[[], float]
Pair = tuple[Policy, str]
"""A policy and a trace's id."""


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
    commits: int = 0
    """Of a run that is stored at its end; texts that turns name are a commit of their own."""
    commit: float = 0.0
    """Seconds of one, as the median over those of all policies that were tried together, in a new store."""
    stretch: float = 0.0
    """How much longer the trials took than they computed, because other programs ran."""
    at: float = 0.0
    """When it was, in seconds since 1970."""


class Taken(NamedTuple):
    """Time and processor time."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> "Taken":
        return cls(time.perf_counter(), time.process_time())

    def __sub__(self, other: "Taken") -> "Taken":
        return Taken(self.wall - other.wall, self.cpu - other.cpu)


def stretched(taken: Sequence[Taken]) -> float:
    """How much longer trials took than they computed."""
    wall, cpu = (sum(one) for one in zip(*taken, strict=True)) if taken else (0.0, 0.0)
    return max(1.0, wall / cpu) if cpu else 1.0


def evened(taken: Sequence[Taken]) -> list[float]:
    """For each trial, what its time is to be multiplied by so that all waited for a processor alike: other programs interrupt a few of
    many short trials for long, and will interrupt other runs. The times still add up to what all took."""
    wall, cpu = (sum(one) for one in zip(*taken, strict=True)) if taken else (0.0, 0.0)
    waited = wall / cpu if cpu else 1.0
    return [waited * one.cpu / one.wall if one.wall and cpu else 1.0 for one in taken]


def try_policies(waiting: Sequence[Pair], others: Sequence[Pair], factory: Factory) -> list[Trial]:
    """Try policies on traces one after another and remember what was found; those that do not run are left out.

    As in a batch, a policy finds what those before it have read and summarised; the batch itself finds none of it. Policies that write
    summaries come last, with the time that the others leave: they take most of it. `others`: tried as long as there is time.
    """
    found: list[tuple[Trial, Taken]] = []
    apart = _apart(factory)
    gc.freeze()  # as a worker does, so that garbage costs a trial what it costs a run
    with TemporaryDirectory(prefix="pamer-lab-", ignore_cleanup_errors=True) as folder:
        store = RunStore(Workspace(folder))
        for pairs, least in ((waiting, 0.0), (others, LEAST)):
            end, left = time.monotonic() + MOST, sorted(pairs, key=lambda pair: "summariser" in pair[0].needs)
            weights = _weights(left, [trial for trial, _ in found])
            for number, (policy, trace_id) in enumerate(left):
                seconds = (end - time.monotonic()) * weights[number] / sum(weights[number:])
                if least and seconds <= 0:
                    break
                if tried := try_policy(policy, trace_id, apart, min(max(seconds, least), ALONE), store):
                    found.append(tried)
    forget_lines()
    loads, waited, now = evened([taken for _, taken in found]), stretched([taken for _, taken in found]), time.time()
    trials = [
        replace(trial, commit=statistics.median(store.commits), seconds=trial.seconds * load, stretch=waited, at=now)
        for (trial, _), load in zip(found, loads, strict=True)
    ]
    _remember(factory.workspace.path, trials)
    return trials


def _weights(pairs: Sequence[Pair], tried: Sequence[Trial]) -> list[float]:
    """How the time is divided among trials: by what a turn of each policy took on another trace; equally where that is not known."""
    seconds = {trial.policy: trial.seconds for trial in tried}
    usual = statistics.mean(seconds.values()) if seconds else 1.0
    return [seconds.get(policy.name, usual) for policy, _ in pairs]


def try_policy(policy: Policy, trace_id: str, factory: Factory, seconds: float, store: RunStore) -> tuple[Trial, Taken] | None:
    """Replay a trace's first turns for so many seconds, and store them elsewhere; what the turns took. None: the policy does not run."""
    try:
        line = stored_timeline(factory.workspace.trace(trace_id), factory.profile.name, factory.workspace)
        if line.turns < 1 or (isinstance(policy, PlainPolicy) and policy.refuses(line.trace)):
            return None
        before = Taken.now()
        found, turns = turn_seconds(line, policy, RunResources(factory, "trial"), seconds)
        taken = Taken.now() - before
        commits = commits_of(turns, store)
    except LabError:
        return None
    return Trial(factory.profile.name, policy.name, trace_id, found, line.cumulative[-1] / line.turns, commits), taken


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
        if len(turns) >= LEAST_TURNS and spent > _enough(spent / len(turns) * line.turns, seconds):
            break
    packing = clock()
    packed("", turns)
    packing = (clock() - packing) / len(turns)
    newest = newest_turns(len(turns))
    later = (marks[-1] - marks[-1 - newest]) / newest
    return (spent + (line.turns - len(turns)) * later) / line.turns + packing, turns


def newest_turns(turns: int) -> int:
    """Of so many turns, the newest by which those to come are estimated."""
    return max(1, turns // 4, min(turns // 2, NEWEST))


def _enough(run: float, seconds: float) -> float:
    """How long a trial of about so many seconds goes on, if the run would take `run`."""
    most = LONGER * seconds
    return most if run <= most else min(most, max(seconds, SHARE * run))


def commits_of(turns: Sequence[Turn], store: RunStore) -> int:
    """Store a trial's turns as a short run does; how many commits that took."""
    before = len(store.commits)
    store.add_turns(f"trial-{before}", turns)
    return len(store.commits) - before


def _apart(factory: Factory) -> Factory:
    """The factory with counts and summaries of its own, so that neither the trial nor the run finds what the other has made."""
    parts = replace(factory.parts, tokens=factory.tokens.apart())
    if isinstance(parts.summariser, CachedSummariser):
        parts = replace(parts, summariser=CachedSummariser(parts.summariser.inner))
    return replace(factory, parts=parts)


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
