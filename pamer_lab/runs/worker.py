"""The replay worker, for any engine: one trace through some policies; and how many workers to start.

It can be killed at any moment: finished turns are in the store. A run that is interrupted is marked as cancelled.
"""

import gc
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from pamer_lab.engines import Engine
from pamer_lab.engines.local import cores
from pamer_lab.errors import LabError, StorageError
from pamer_lab.factory import Factory
from pamer_lab.jobs import Progress
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import loads
from pamer_lab.policies.registry import parse_policy
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.values import Turn
from pamer_lab.workspace import Workspace

REPORT_EVERY = 0.2
"""Seconds between two progress lines."""
WORTH_WORKERS = 10.0
"""Minimum seconds of work for starting worker processes, which takes a few seconds itself."""


def default_processes(policies: Sequence[str], traces: int, seconds: float, engine: Engine | None = None) -> int:
    """Worker processes if the caller names none. 0, this process, for policies with models, which share the model and all cores, and for
    work that would end before workers had started; else one single-threaded worker per core. On a cluster, as many as fit."""
    if engine is not None and engine.name != "local":
        return min(traces, engine.capacity())
    if any(map(runs_a_model, policies)) or traces < 2 or seconds < WORTH_WORKERS:
        return 0
    return min(traces, cores())


def runs_a_model(policy: str) -> bool:
    """Whether a policy runs a model on this machine, which takes all cores: to read states, to embed, or weights of its own."""
    needs = parse_policy(policy).needs
    return not {"heads", "embedder", "weights"}.isdisjoint(needs)


class Job(msgspec.Struct, frozen=True):
    """One trace through some policies."""

    workspace: str
    trace_id: str
    policies: tuple[str, ...]
    profile: str = "embedded"
    device: str = "auto"
    turn_limit: int = 0
    fresh: bool = False
    heads: str = ""
    batch: str = ""
    """Names the batch; any of its workers may take over a run that a lost one left."""
    expected: dict[str, float] = {}
    """Expected seconds by policy, where they are known."""
    guessed: tuple[str, ...] = ()
    """Policies whose expected seconds are a guess, not measured on this trace."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker reports to its parent."""

    policy: str = ""
    done: int = 0
    """Turns of this run that are done."""
    run_id: str = ""
    """Set when the run ended."""
    status: str = ""
    error: str = ""
    doing: str = ""
    """What it does before the next turn, in words; empty while turns come."""
    finished: bool = False
    """The job has ended."""
    read: int = 0
    """Tokens of the trace whose states have been read, while more are being read."""
    to_read: int = 0
    again: str = ""
    """Why the job should be tried again: a storage fault, which may pass."""


def work(job: Job, tell: Any) -> None:
    """Replay one job, reporting turns and ends; an error in one policy does not stop the others."""
    gc.freeze()  # what is loaded now stays; scanning it for garbage takes longer than a short run
    workspace = _opened(job.workspace, job.batch)
    for policy in job.policies:
        last = 0.0

        def watch(turn: Turn, of: int, policy: str = policy) -> None:
            nonlocal last
            if time.monotonic() - last >= REPORT_EVERY:
                last = time.monotonic()
                tell(Note(policy, turn.t + 1))

        def reading(progress: Progress, policy: str = policy) -> None:
            nonlocal last
            if time.monotonic() - last >= REPORT_EVERY:
                last = time.monotonic()
                tell(Note(policy, read=progress.done, to_read=progress.total))

        options = ReplayOptions(job.profile, job.device, job.turn_limit, job.fresh, watch, reading, heads=job.heads, owner=job.batch)
        options = replace(options, expected=job.expected.get(policy), guessed=policy in job.guessed)
        try:
            tell(Note(policy, doing=_first_steps(job, policy, workspace)))
            run = replay(job.trace_id, policy, workspace, options)
            tell(Note(policy, len(run.turns), run.run_id, run.head.status))
        except StorageError as error:
            tell(Note(policy, again=str(error)))
            return
        except LabError as error:
            tell(Note(policy, status="failed", error=str(error)))
    tell(Note(finished=True))


@lru_cache(maxsize=1)
def _opened(address: str, batch: str) -> Workspace:
    """A workspace whose tables stay open from job to job of one batch."""
    return Workspace(address)


def _first_steps(job: Job, policy: str, workspace: Workspace) -> str:
    """What happens between the start of a run and its first turn."""
    factory = Factory(load_profile(job.profile, workspace.path), workspace, job.device, job.heads)
    models = loads(parse_policy(policy), factory)
    device = "" if job.device == "auto" else f" on {job.device}"
    return f"{policy}: loading {' and '.join(models)}{device}" if models else f"{policy}: counting the tokens of the trace"
