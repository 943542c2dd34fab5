"""What a worker of any engine does to replay: one trace through some policies; and how many workers there are.

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
"""Seconds of work from which worker processes are started; that takes a few seconds."""


def default_processes(policies: Sequence[str], traces: int, seconds: float, engine: Engine | None = None) -> int:
    """Worker processes where the caller names none: one for policies with models, which share the model and all cores; the others compute
    in one thread each, and in this process where it would be done before workers have started. On a cluster as many as fit."""
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
    """Names the batch; the run that a lost worker of it left belongs to whoever goes on."""
    expected: dict[str, float] = {}
    """Seconds by policy, where whoever gives the job knows them."""
    guessed: tuple[str, ...] = ()
    """Policies whose seconds are those of another trace."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker tells its parent."""

    policy: str = ""
    done: int = 0
    """Turns of this run that are there."""
    run_id: str = ""
    """Set when the run ended."""
    status: str = ""
    error: str = ""
    doing: str = ""
    """What it does before the next turn, in words; empty while turns come."""
    finished: bool = False
    """The complete job ended."""
    read: int = 0
    """Tokens of the trace whose states are computed, while the next ones are."""
    to_read: int = 0
    again: str = ""
    """Why the job is worth another attempt: a fault of the store, which may pass."""


def work(job: Job, tell: Any) -> None:
    """Replay one job, telling of turns and ends; an error in one policy does not stop the others."""
    gc.freeze()  # what is loaded now stays; looking through it again takes longer than a short run
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
