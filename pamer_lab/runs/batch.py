"""Several traces through several policies, in worker processes, with progress and the time that is left.

A job is one trace with all its policies of a kind, so that a worker computes each hidden state once for all of them; policies without
heads go first, on every trace, and what needs a model is queued behind them. Whatever happens to a worker, its finished turns are
stored, its unfinished runs are reported as failed, and replaying the batch again computes only what is missing.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import uuid4

from pamer_lab.counts import counted
from pamer_lab.engines import Engine, LocalEngine
from pamer_lab.engines.crew import Crew
from pamer_lab.errors import Cancelled
from pamer_lab.factory import Factory
from pamer_lab.jobs import Progress
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.trust import require_confirmed
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources, factory_of
from pamer_lab.runs.estimate import Cost, Estimator
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.worker import Job, Note, work
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.queue import in_line

TIDY_EVERY = 32
"""Traces between two looks at how many small files their commits have left; reading and writing slow down with their number."""
FORECAST_EVERY = 1.0
"""Seconds between two sums over all runs of the time that is left."""
BELIEVED = 5.0
"""Seconds of reading for which the estimate counts against what is seen: the first steps come unevenly."""
STOPPED = "the batch was stopped; finished turns are kept, and replaying again continues from there"


@dataclass(frozen=True)
class BatchOptions:
    """How a batch runs."""

    profile: str = "embedded"
    device: str = "auto"
    turn_limit: int = 0
    """Replay only the first turns of each trace; 0 means all."""
    fresh: bool = False
    processes: int = 0
    """Worker processes; 0 works in this process."""
    heads: str = ""
    """Name or folder of the heads that vote; empty: the profile's, else those that fit its model."""


@dataclass(frozen=True, kw_only=True)
class BatchProgress(Progress):
    """How far a batch is; the time left is by the measured time per turn of each policy."""

    what: str = "turns"
    runs_done: int
    runs: int
    latest: str = ""
    """The trace and policy that moved on."""
    doing: str = ""
    """What a worker does before its next turn, such as loading a model; empty while turns come."""
    read: int = 0
    """Tokens of the trace whose states are computed, while the next ones are."""
    to_read: int = 0
    ahead: int = 0
    """Replays and studies that came earlier and have not ended."""

    @property
    def line(self) -> str:
        if self.ahead:
            return f"{self.counted}, waiting for {counted(self.ahead, 'other job')} in this workspace"
        first = f"{self.doing}; " if self.doing else ""
        reading = f", reading states: {self.read:,} of {self.to_read:,} tokens of the trace" if self.to_read else ""
        return f"{first}{self.counted}, {self.runs_done:,} of {counted(self.runs, 'run')}{reading}{self.time_left}"


@dataclass(frozen=True)
class Outcome:
    """What became of one run of the batch."""

    trace_id: str
    policy: str
    run_id: str
    status: str
    error: str = ""


@dataclass
class BatchState:
    """What is known about a batch so far; changed under `lock`."""

    lengths: dict[str, int]
    policies: tuple[str, ...]
    began: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: dict[tuple[str, str], int] = field(default_factory=dict)
    """Turns that are there, by trace and policy."""
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    expected: dict[tuple[str, str], Cost] = field(default_factory=dict)
    """What each run should take, by trace and policy."""
    read: dict[tuple[str, str], float] = field(default_factory=dict)
    """Share of a run's states that is read."""
    begun: set[tuple[str, str]] = field(default_factory=set)
    """Runs that read or have turns; what passed before that was loading, and says nothing of their pace."""
    paces: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Turns and seconds seen, by policy."""
    reading: tuple[float, float] = (0.0, 0.0)
    """Seconds that reading should have taken so far, and those that it took."""
    turns_done: int = 0
    total: int = 0
    """Turns of all runs."""
    forecast: tuple[float, float] = (float("-inf"), 0.0)
    """When the time left was last added up, over all runs, and what it was."""

    def __post_init__(self) -> None:
        self.total = sum(self.lengths.values()) * len(self.policies)

    def take(self, trace_id: str, note: Note, since: float) -> None:
        key = (trace_id, note.policy)
        before = self.done.get(key, 0)
        counts = key in self.begun
        if note.to_read:
            share = note.read / note.to_read
            if counts:
                expected, seconds = self.reading
                self.reading = (expected + (share - self.read.get(key, 0.0)) * self.cost(key).read_seconds, seconds + since)
            self.read[key] = share
        if note.done > before:
            self.read.setdefault(key, 1.0)  # turns that come without reading find their states
            if counts:
                turns, seconds = self.paces.get(note.policy, (0, 0.0))
                self.paces[note.policy] = (turns + note.done - before, seconds + since)
            self.done[key] = note.done
        if note.to_read or note.done:
            self.begun.add(key)
        if note.status:
            self.outcomes[key] = Outcome(trace_id, note.policy, note.run_id, note.status, note.error)
            self.done[key], self.read[key] = self.lengths[trace_id], 1.0
        self.turns_done += self.done.get(key, 0) - before

    def cost(self, key: tuple[str, str]) -> Cost:
        return self.expected.get(key, Cost(0, self.lengths[key[0]], 0.0, 0.0))

    def seconds_left(self) -> float:
        """Of all runs; added up again after a while, since there may be many."""
        now = time.monotonic()
        if now - self.forecast[0] >= FORECAST_EVERY or len(self.outcomes) == len(self.lengths) * len(self.policies):
            self.forecast = (now, self._added_up())
        return self.forecast[1]

    def _added_up(self) -> float:
        """As estimated, corrected by how long reading and each policy's turns really take."""
        expected, seconds = self.reading
        slower = (seconds + BELIEVED) / (expected + BELIEVED)
        left = 0.0
        for trace_id, length in self.lengths.items():
            for policy in self.policies:
                key = (trace_id, policy)
                turns, spent = self.paces.get(policy, (0, 0.0))
                pace = spent / turns if turns else self.cost(key).turn_seconds
                left += (length - self.done.get(key, 0)) * pace + (1 - self.read.get(key, 0.0)) * self.cost(key).read_seconds * slower
        return left

    def progress(self, workers: int, latest: str, doing: str = "") -> BatchProgress:
        return BatchProgress(
            done=self.turns_done,
            total=self.total,
            runs_done=len(self.outcomes),
            runs=len(self.lengths) * len(self.policies),
            seconds=time.monotonic() - self.began,
            seconds_left=self.seconds_left() / max(workers, 1),
            latest=latest,
            doing=doing,
        )


def replay_batch(
    trace_ids: Sequence[str],
    policies: Sequence[str],
    workspace: Workspace,
    options: BatchOptions | None = None,
    *,
    engine: Engine | None = None,
    report: Callable[[BatchProgress], None] = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """Replay every trace through every policy; outcomes come in the order asked for, failed ones with their error.

    A policy whose parameters cannot be is the caller's mistake, not a failed run: `InputError` before anything starts.
    """
    options = options or BatchOptions()
    factory = _check_policies(policies, workspace, options)
    unique = list(dict.fromkeys(trace_ids))
    turns = {trace_id: size.turns for trace_id, size in workspace.trace_sizes(unique).items()}
    lengths = {trace_id: min(turns.get(trace_id, 0), options.turn_limit or turns.get(trace_id, 0)) for trace_id in unique}
    known = [trace_id for trace_id in unique if trace_id in turns]
    estimator = Estimator(factory, options.turn_limit)
    estimator.try_unknown(dict.fromkeys(policies, known))
    asked = estimator.costs(dict.fromkeys(policies, known))
    state = BatchState(lengths, tuple(policies), expected={(trace_id, policy): cost for (policy, trace_id), cost in asked.items()})
    common = {"profile": options.profile, "device": options.device, "turn_limit": options.turn_limit, "fresh": options.fresh}
    common |= {"heads": options.heads, "batch": uuid4().hex}
    engine = engine or LocalEngine()
    for part in fast_first(policies):
        jobs = [Job(workspace.address, trace_id, part, **common) for trace_id in unique]  # type: ignore[arg-type]
        batch = _Batch(state, min(options.processes, len(jobs)), report, cancelled, RunStore(workspace))
        if parse_policy(part[0]).needs_models and engine.name == "local":
            with in_line(workspace.path, waiting=lambda ahead: report(replace(state.progress(1, ""), ahead=ahead)), cancelled=cancelled):
                batch.run(jobs, engine)
        else:
            batch.run(jobs, engine)
    missing = "the batch ended before this run; replay again to continue"
    return [
        state.outcomes.get((trace_id, policy)) or Outcome(trace_id, policy, "", "failed", missing)
        for trace_id in unique
        for policy in policies
    ]


def fast_first(policies: Sequence[str]) -> list[tuple[str, ...]]:
    """The policies without heads, then the others; a kind that nobody asked for is left out."""
    slow = {policy for policy in policies if parse_policy(policy).needs_models}
    parts = (tuple(policy for policy in policies if (policy in slow) == last) for last in (False, True))
    return [part for part in parts if part]


def _check_policies(policies: Sequence[str], workspace: Workspace, options: BatchOptions) -> Factory:
    """Refuse impossible policies, missing tokenizers and heads that do not fit, before anything is started."""
    factory = Factory(load_profile(options.profile, workspace.path), workspace, options.device, options.heads)
    require_confirmed(factory.profile)
    _ = factory.tokens
    if options.heads:
        _ = factory.heads
    for policy in map(parse_policy, policies):
        policy.settings(RunResources(factory_of(policy, factory)))
    return factory


class _Batch:
    """The jobs of a batch, in this process or with workers."""

    def __init__(
        self, state: BatchState, workers: int, report: Callable[[BatchProgress], None], cancelled: Callable[[], bool], store: RunStore
    ) -> None:
        self.state, self.workers, self.report, self.cancelled, self.store = state, workers, report, cancelled, store
        self._ended = 0
        """Jobs that ended."""
        self._last: dict[str, float] = {}
        """When each trace was last heard of."""

    def run(self, jobs: Sequence[Job], engine: Engine) -> None:
        if self.workers:
            crew = Crew(engine, "pamer_lab.runs.worker", Note, self._told, self._lost, cancelled=self.cancelled, stopped=STOPPED)
            crew.run(jobs, self.workers)
            return
        for job in jobs:
            if self.cancelled():
                return
            work(job, partial(self._alone, job))

    def _alone(self, job: Job, note: Note) -> None:
        """A note of this process, where nothing is tried again."""
        if note.again:
            self._lost(job, note.again)
        else:
            self._told(job, note)

    def _told(self, job: Job, note: Note) -> None:
        with self.state.lock:
            now = time.monotonic()
            self.state.take(job.trace_id, note, now - self._last.get(job.trace_id, now))
            self._last[job.trace_id] = now
            progress = self.state.progress(self.workers, f"{job.trace_id} {note.policy}", note.doing)
            self.report(replace(progress, read=note.read, to_read=note.to_read))
            self._ended += note.finished
            tidy = note.finished and self._ended % TIDY_EVERY == 0
        if tidy:
            self.store.tidy()
        if self.cancelled() and not self.workers:
            raise Cancelled(STOPPED)

    def _lost(self, job: Job, reason: str) -> None:
        for policy in job.policies:
            if (job.trace_id, policy) not in self.state.outcomes:
                error = f"trace {job.trace_id} failed ({reason}); finished turns are kept, replay again to continue"
                self._told(job, Note(policy, status="failed", error=error))
