"""Several traces through several policies, in worker processes, with progress and the time left.

A job is one trace with all its policies of a kind, so that a worker computes each hidden state once for all of them; policies that run no
model go first, on every trace, and those that do are queued after them. Whatever happens to a worker, its finished turns are stored, its
unfinished runs are reported as failed, and replaying the batch again computes only what is missing.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

from pamer_lab.engines import Engine, LocalEngine
from pamer_lab.engines.crew import Crew
from pamer_lab.errors import Cancelled
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.trust import require_confirmed
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources, factory_of
from pamer_lab.runs.batch_state import BatchProgress, BatchState, Outcome
from pamer_lab.runs.estimate import Estimator
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.worker import Job, Note, runs_a_model, work
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.queue import in_line

TIDY_EVERY = 32
"""Jobs between two merges of the small files that commits leave, which slow down reading and writing."""
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

    Invalid policy parameters are the caller's mistake, not a failed run: they raise `InputError` before anything starts.
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
        light = not runs_a_model(part[0])
        jobs = [
            Job(
                workspace.address,
                trace_id,
                part,
                expected=state.known_seconds(trace_id, part) if light else {},
                guessed=state.unsure(trace_id, part),
                **common,  # type: ignore[arg-type]
            )
            for trace_id in unique
        ]
        batch = _Batch(state, min(options.processes, len(jobs)), report, cancelled, RunStore(workspace))
        if not light and engine.name == "local":
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
    """The policies that run no model, then the others; an empty group is left out."""
    slow = set(filter(runs_a_model, policies))
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
        """When the last note about each trace arrived."""
        self._tidying: threading.Thread | None = None

    def run(self, jobs: Sequence[Job], engine: Engine) -> None:
        try:
            self._work_off(jobs, engine)
        finally:
            if self._tidying is not None:
                self._tidying.join()

    def _work_off(self, jobs: Sequence[Job], engine: Engine) -> None:
        if self.workers:
            crew = Crew(engine, "pamer_lab.runs.worker", Note, self._told, self._lost, cancelled=self.cancelled, stopped=STOPPED)
            crew.run(jobs, self.workers)
            return
        for job in jobs:
            if self.cancelled():
                return
            work(job, partial(self._alone, job))

    def _alone(self, job: Job, note: Note) -> None:
        """Take a note from this process, where no job is tried again."""
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
            if tidy and not (self._tidying and self._tidying.is_alive()):  # in the background: no worker waits for it
                self._tidying = threading.Thread(target=self.store.tidy, daemon=True)
                self._tidying.start()
        if self.cancelled() and not self.workers:
            raise Cancelled(STOPPED)

    def _lost(self, job: Job, reason: str) -> None:
        for policy in job.policies:
            if (job.trace_id, policy) not in self.state.outcomes:
                error = f"trace {job.trace_id} failed ({reason}); finished turns are kept, replay again to continue"
                self._told(job, Note(policy, status="failed", error=error))
