"""Extraction by the workers of an engine: each takes one conversation at a time, and its states go straight into the store.

`computing_on(...)` applies to everything that is extracted with a store inside its block; the caller then finds the states in the store,
so that only what a probe reads is transferred. A conversation that fails is named after all others are done.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import groupby

from pamer_lab.engines import Engine
from pamer_lab.engines.crew import Crew
from pamer_lab.errors import ProbeError
from pamer_lab.features.values import OnProgress, Request
from pamer_lab.features.worker import Job, Note, Part
from pamer_lab.jobs import Progress
from pamer_lab.models.profiles import Profile
from pamer_lab.workspace import Workspace


@dataclass(frozen=True)
class Elsewhere:
    """Where states are computed."""

    engine: Engine
    workers: int
    workspace: Workspace
    profile: Profile
    device: str

    def fill(self, requests: Sequence[Request], layers: Sequence[str], poolings: Sequence[str], total: int, told: OnProgress | None) -> int:
        """Compute the states of these requests; returns the tokens that went through the models."""
        began, lock, done, failed = time.perf_counter(), threading.Lock(), 0, dict[str, str]()

        def heard(job: Job, note: Note) -> None:
            nonlocal done
            with lock:
                done += note.tokens
                if note.error:
                    failed[job.name] = note.error
                if told:
                    seconds = time.perf_counter() - began
                    left = (total - done) * seconds / done if done else None
                    told(Progress(done=done, total=max(total, done), what="tokens", seconds=seconds, seconds_left=left))

        def lost(job: Job, reason: str) -> None:
            failed[job.name] = reason

        jobs = [
            Job(
                self.workspace.address,
                self.profile.model_dump_json(),
                self.device,
                tuple(group[0].messages),
                tuple(group[0].tools),
                tuple(map(_part, group)),
                tuple(layers),
                tuple(poolings),
            )
            for group in conversations(requests)
        ]
        Crew(self.engine, "pamer_lab.features.worker", Note, heard, lost).run(jobs, self.workers)
        if failed:
            named = "; ".join(f"{name}: {reason}" for name, reason in list(failed.items())[:5])
            raise ProbeError(f"{len(failed)} of {len(jobs)} traces failed ({named}); the states of the others are kept")
        return done


def conversations(requests: Sequence[Request]) -> list[list[Request]]:
    """Requests over the same conversation, which share its tokens."""
    return [list(group) for _, group in groupby(requests, key=lambda request: (id(request.messages), request.tools))]


def _part(request: Request) -> Part:
    points = None if request.points is None else tuple(request.points)
    return Part(points, request.context, request.hint, request.name, request.active_tokens, request.probe_prompt, request.recorded)


_HERE: ContextVar[Elsewhere | None] = ContextVar("elsewhere", default=None)


def elsewhere() -> Elsewhere | None:
    """Where states are computed at the moment; None: in this process."""
    return _HERE.get()


@contextmanager
def computing_on(place: Elsewhere | None) -> Iterator[None]:
    """Compute states at `place` inside this block; None: in this process."""
    before = _HERE.set(place)
    try:
        yield
    finally:
        _HERE.reset(before)
