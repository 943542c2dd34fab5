"""How long a policy's turns take on this machine, measured by a short trial on the first turns of a trace.

For policies that need no model. A trial works like a run, but stores its turns in a temporary store; its result is kept in the workspace's
`trials.json`, so that asking again costs nothing and a run can be compared with its estimate.
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
"""Number of trials kept; the oldest are dropped."""
MOST = 2.0
"""Seconds, roughly, for each of an estimate's two rounds of trials: every policy on one trace, then on other traces."""
LEAST = 0.02
"""Minimum seconds of a trial on another trace, which limits how many traces are tried."""
ALONE = 1.0
"""Maximum seconds planned for one trial."""
LONGER, SHARE = 2.5, 0.25
"""A trial may take up to `LONGER` times its seconds if that completes the run, or until it has covered `SHARE` of the run's time."""
LEAST_TURNS = 4
"""Minimum number of turns for a meaningful trial."""
NEWEST = 20
"""Minimum number of newest turns to extrapolate from, up to half of a trial: policies that act every few turns do so several times."""

Clock = Callable[[], float]
Pair = tuple[Policy, str]
"""A policy and a trace's id."""


@dataclass(frozen=True)
class Trial:
    """What a trial measured, and for which replay."""

    profile: str
    policy: str
    trace_id: str
    seconds: float
    """Mean seconds of a turn over the complete trace."""
    tokens: float
    """Mean tokens of a block over the complete trace."""
    commits: int = 0
    """Commits of a run that is stored at its end; texts that its turns refer to are a separate commit."""
    commit: float = 0.0
    """Seconds of one commit to a new store: the median over all policies tried together."""
    stretch: float = 0.0
    """Ratio of the trials' wall time to their processor time; above 1 where other programs ran."""
    at: float = 0.0
    """When it ended, in seconds since 1970."""


class Taken(NamedTuple):
    """Wall time and processor time, in seconds."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> "Taken":
        return cls(time.perf_counter(), time.process_time())

    def __sub__(self, other: "Taken") -> "Taken":
        return Taken(self.wall - other.wall, self.cpu - other.cpu)


def stretched(taken: Sequence[Taken]) -> float:
    """Ratio of the trials' wall time to their processor time, at least 1."""
    wall, cpu = (sum(one) for one in zip(*taken, strict=True)) if taken else (0.0, 0.0)
    return max(1.0, wall / cpu) if cpu else 1.0


def evened(taken: Sequence[Taken]) -> list[float]:
    """For each trial, the factor on its time that spreads the waiting for a processor evenly: other programs delay a few of many short
    trials for long, and will delay other runs. The sum of the times stays the same."""
    wall, cpu = (sum(one) for one in zip(*taken, strict=True)) if taken else (0.0, 0.0)
    waited = wall / cpu if cpu else 1.0
    return [waited * one.cpu / one.wall if one.wall and cpu else 1.0 for one in taken]


def try_policies(waiting: Sequence[Pair], others: Sequence[Pair], factory: Factory) -> list[Trial]:
    """Try policies on traces one after another and remember the results; policies that cannot run are left out.

    As in a batch, a policy reuses what those before it have read and summarised; the batch itself reuses none of it. Policies that write
    summaries come last and get the remaining time, since they take most of it. `others`: tried while there is time.
    """
    found: list[tuple[Trial, Taken]] = []
    apart = _apart(factory)
    gc.freeze()  # as in a worker, so that garbage collection costs a trial what it costs a run
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
    """How the time is divided among trials: by what a turn of each policy took in an earlier one, or their mean if it is unknown."""
    seconds = {trial.policy: trial.seconds for trial in tried}
    usual = statistics.mean(seconds.values()) if seconds else 1.0
    return [seconds.get(policy.name, usual) for policy, _ in pairs]


def try_policy(policy: Policy, trace_id: str, factory: Factory, seconds: float, store: RunStore) -> tuple[Trial, Taken] | None:
    """Replay a trace's first turns for about `seconds`, into `store`: the trial and the time it took, or None if the policy cannot run."""
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

    A trial that reaches the end has measured it. Otherwise the remaining turns count like the newest ones: many policies do more as a
    trace grows, until they reach their budgets, and some do less after that.
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
    """How many of `turns` turns, the newest ones, to estimate the coming ones from."""
    return max(1, turns // 4, min(turns // 2, NEWEST))


def _enough(run: float, seconds: float) -> float:
    """Seconds after which a trial of about `seconds` ends, if the complete run would take `run`."""
    most = LONGER * seconds
    return most if run <= most else min(most, max(seconds, SHARE * run))


def commits_of(turns: Sequence[Turn], store: RunStore) -> int:
    """Store a trial's turns as a short run does; returns the number of commits."""
    before = len(store.commits)
    store.add_turns(f"trial-{before}", turns)
    return len(store.commits) - before


def _apart(factory: Factory) -> Factory:
    """The factory with separate counts and summaries, so that neither a trial nor a run reuses what the other has made."""
    parts = replace(factory.parts, tokens=factory.tokens.apart())
    if isinstance(parts.summariser, CachedSummariser):
        parts = replace(parts, summariser=CachedSummariser(parts.summariser.inner))
    return replace(factory, parts=parts)


def trials(folder: Path) -> list[Trial]:
    """Earlier trials in a workspace, oldest first."""
    try:
        return msgspec.json.decode(read_file(folder / FILE), type=list[Trial])
    except (LabError, OSError, msgspec.MsgspecError):
        return []


def _remember(folder: Path, found: Sequence[Trial]) -> None:
    """Keep the results; nothing is kept if the workspace cannot be written."""
    if reviewer_mode() or not found:
        return
    kept = {(trial.profile, trial.policy, trial.trace_id): trial for trial in [*trials(folder), *found]}
    try:
        write_whole(folder / FILE, msgspec.json.encode([*kept.values()][-KEPT:]))
    except LabError:
        return
