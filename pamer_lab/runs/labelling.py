"""Hindsight labels for many traces: the worker, for any engine, and the function that gives traces to workers.

A job is some traces, labelled and stored in one commit. Labels depend only on trace and rule, so a repeated job stores the same.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import msgspec

from pamer_lab.blocks import MessageTokens
from pamer_lab.engines import Engine
from pamer_lab.engines.crew import Crew
from pamer_lab.errors import LabError, StorageError
from pamer_lab.jobs import Progress, Say
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.hindsight import Rule, hindsight_labels, labelled
from pamer_lab.runs.timeline import lay_out
from pamer_lab.workspace import Workspace

BATCH = 50
"""Traces per job and commit."""


class Job(msgspec.Struct, frozen=True):
    """Some traces, and the rule."""

    workspace: str
    profile: str
    trace_ids: tuple[str, ...]
    rule: dict[str, int]


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker reports to its parent."""

    finished: bool = False
    again: str = ""


def work(job: Job, tell: Callable[[Note], Any]) -> None:
    """Label the traces of a job."""
    workspace = Workspace(job.workspace)
    try:
        tokens, rule = _tokens(job.profile, job.workspace), Rule(**job.rule)
        traces = (workspace.trace(trace_id).trace for trace_id in job.trace_ids)
        workspace.relabel([labelled(trace, hindsight_labels(lay_out(trace, tokens), rule)) for trace in traces])
    except StorageError as error:
        tell(Note(again=str(error)))
        return
    tell(Note(finished=True))


@lru_cache(maxsize=2)
def _tokens(profile: str, workspace: str) -> MessageTokens:
    return profile_tokens(load_profile(profile, Workspace(workspace).path))


def label_traces(
    trace_ids: Sequence[str], rule: Rule, workspace: Workspace, profile: str, say: Say, engine: Engine, workers: int = 0
) -> None:
    """Label traces of the workspace; 0 workers label in this process. Those that fail are named when all others are done."""
    done, lock, failed = 0, threading.Lock(), dict[str, str]()
    starts = range(0, len(trace_ids), BATCH)
    jobs = [Job(workspace.address, profile, tuple(trace_ids[start : start + BATCH]), asdict(rule)) for start in starts]

    def told(job: Job, note: Note) -> None:
        nonlocal done
        with lock:
            done += len(job.trace_ids) if note.finished else 0
            say(Progress(done=done, total=len(trace_ids), what="traces"))

    def lost(job: Job, reason: str) -> None:
        if len(job.trace_ids) == 1:
            failed[job.trace_ids[0]] = reason
        else:
            alone.extend(msgspec.structs.replace(job, trace_ids=(name,)) for name in job.trace_ids)

    alone: list[Job] = []
    if workers:
        Crew(engine, __name__, Note, told, lost).run(jobs, workers)
        if alone:  # one of them is to blame
            Crew(engine, __name__, Note, told, lost).run(alone, workers)
    else:
        for job in jobs:
            work(job, lambda note, job=job: lost(job, note.again) if note.again else told(job, note))  # type: ignore[misc]
        failed |= dict.fromkeys((name for job in alone for name in job.trace_ids), "the store failed")
    if failed:
        named = "; ".join(f"{name}: {reason}" for name, reason in list(failed.items())[:5])
        raise LabError(f"{len(failed)} of {len(trace_ids)} traces could not be labelled ({named}); all others are done")
