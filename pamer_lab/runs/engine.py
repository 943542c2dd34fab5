"""One trace, one policy -> one run, turn by turn.

The engine shows the policy only what comes before the turn, checks its decision against the ledger, and stores it. A run's
id is a hash of what determines it (trace, policy, settings, models, tokenizer, turn limit), so replaying the same thing
again finds the stored turns and computes only the missing ones; a complete run is returned as it is. Turns that follow each
other faster than `STORE_EVERY` (or than the disk allows) are stored together; a killed process loses no more than that. A run
without models that ends sooner is stored at its end. A file lock lets only one process at a time work on a run.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import msgspec
from filelock import FileLock, Timeout

from pamer_lab.errors import Cancelled, InputError, StorageError
from pamer_lab.factory import Factory, Parts
from pamer_lab.features.pace import remember_embedding
from pamer_lab.features.values import OnProgress
from pamer_lab.jobs import Progress
from pamer_lab.models.kept_embeddings import KeptEmbeddings
from pamer_lab.models.profiles import load_profile, remember_profile
from pamer_lab.models.trust import require_confirmed
from pamer_lab.policies.interface import Policy
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.policies.registry import parse_policy
from pamer_lab.policies.resources import RunResources, factory_of
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.runs.accounting import totals
from pamer_lab.runs.beginning import head_of, now, timeline_of
from pamer_lab.runs.commits import remember_commits
from pamer_lab.runs.expected import Expected, expect
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.timeline import Timeline
from pamer_lab.runs.turn_rows import TEXTS, TURNS
from pamer_lab.runs.turns import replay_turns
from pamer_lab.runs.values import Run, RunInfo, Status, Turn
from pamer_lab.storage.leases import lease
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import RUNS, Workspace

STORE_EVERY = 0.25
"""Seconds; turns that follow each other faster are stored in one commit."""
STORE_SHARE = 0.1
"""Share of the time that storing may take; where the disk is slow, commits become rarer."""

Watcher = Callable[[Turn, int], None]
"""Called with each new turn and the total number of turns."""


@dataclass(frozen=True)
class ReplayOptions:
    """How a replay is run; only `profile`, `heads`, `turn_limit` and `parts` change its result."""

    profile: str = "embedded"
    """A profile's name, TOML file, or `hf:ID`."""
    device: str = "auto"
    turn_limit: int = 0
    """Replay only the first turns; 0 means all."""
    fresh: bool = False
    """Forget a stored run and compute it again."""
    watch: Watcher | None = None
    reading: OnProgress | None = None
    """Called with the progress of the states that are computed ahead of the turns."""
    cancelled: Callable[[], bool] = field(default=lambda: False)
    """Asked before each turn, and while states are read ahead."""
    parts: Parts = field(default_factory=Parts)
    """Models to use instead of the profile's."""
    heads: str = ""
    """Name or folder of the heads that vote; empty: the profile's, else those that fit its model."""
    owner: str = ""
    """Who replays, in a workspace that machines share: a run that one has left is taken over only by the same owner. Empty: by nobody."""
    expected: float | None = None
    """Seconds that the run of a policy without models should take; None: estimate them first."""
    guessed: bool = False
    """Whether `expected` is a guess: this policy was never measured on this trace."""


def replay(trace: Trace | str, policy: str | Policy, workspace: Workspace | None = None, options: ReplayOptions | None = None) -> Run:
    """Replay a trace through a policy and return the run, complete with its turns and every text that was put into a request.

    Actions are fixed: the run measures contexts, decisions and tokens, never task reward.

    `trace`: a trace, or the id of one that is in the workspace.
    `policy`: a name with its parameters as `pamer-lab replay` takes it (`"pamer+"`, `"sliding-window:3"`), or a policy.
    `workspace`: keeps the run, its memories and the hidden states, so that the same replay is found again and others share its
    states. None: a temporary workspace, removed before this returns; the run needs nothing of it.
    `options`: profile, device, heads, turn limit; None takes the embedded profile and all turns.
    """
    options = options or ReplayOptions()
    if workspace is not None:
        return _replay(trace, policy, workspace, options)
    if isinstance(trace, str):
        raise InputError(f"trace {trace!r} is an id; pass the workspace that has it, or the trace itself")
    with TemporaryDirectory(prefix="pamer-lab-", ignore_cleanup_errors=True) as folder:
        return _replay(trace, policy, Workspace(folder), options)


def _replay(trace: Trace | str, policy: str | Policy, workspace: Workspace, options: ReplayOptions) -> Run:
    refuse_in_reviewer_mode("Replaying", workspace.path)
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    profile = load_profile(options.profile, workspace.path)
    require_confirmed(profile)
    factory = Factory(profile, workspace, options.device, options.heads, options.parts)
    resources = RunResources(factory_of(chosen, factory))
    timeline, demo = timeline_of(trace, workspace, resources.tokens, options.turn_limit)
    if isinstance(chosen, PlainPolicy) and (reason := chosen.missing() or chosen.refuses(timeline.trace)):
        raise InputError(reason)
    head = head_of(timeline, chosen, resources, demo)
    resources.session_id, resources.trace_id = head.run_id, head.trace_id
    remember_profile(profile, workspace.path)
    with _alone(workspace, head.run_id, options.owner) as begun:
        return _Replaying(timeline, chosen, head, RunStore(workspace), options, resources).run(begun)


@contextmanager
def _alone(workspace: Workspace, run: str, owner: str) -> Iterator[bool]:
    """Keep other processes from working on this run, and other machines if the workspace is in an object store.

    Yields whether the run may have been begun before: a killed process leaves its lock file."""
    lock = FileLock(workspace.path / "locks" / f"{run}.lock")
    try:
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        begun = Path(lock.lock_file).exists()
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"run {run} is being replayed by another process; follow it, or wait until it ends") from error
    except OSError as error:
        raise StorageError(f"the workspace {workspace.path} cannot be written ({error.strerror or error})") from error
    try:
        if not workspace.remote:
            yield begun
            return
        with lease(workspace.database, run, owner or uuid4().hex) as ours:
            if not ours:
                raise InputError(f"run {run} is being replayed on another machine; follow it, or wait until it ends")
            yield True
    finally:
        lock.release()


class _Replaying:
    """One run being made: its turns go to the store as they come."""

    def __init__(
        self, timeline: Timeline, policy: Policy, head: RunInfo, store: RunStore, options: ReplayOptions, resources: RunResources
    ) -> None:
        self.timeline, self.policy, self.head, self.store, self.options = timeline, policy, head, store, options
        self.resources = resources
        self.turns: list[Turn] = []
        self.stored = self.before = 0
        self.expected = Expected(timeline, policy, resources, 0, seconds=0.0, guessed=False, reading=0.0)
        """Nothing is expected until the models are loaded."""
        self.listed = False
        """Whether the run's row is stored."""
        self.began = time.monotonic()

    def run(self, begun: bool) -> Run:
        """`begun`: an earlier replay may have left turns without a row."""
        if (complete := self._take_up(begun)) is not None:
            return complete
        self.resources.forget_from(self.stored)
        if self.listed or self.policy.needs_models:  # others are not worth a row before they have turns
            self._put_head()
        try:
            self._expect()
            self._loop()
        except Cancelled as error:
            self._end("cancelled", str(error))
            raise
        except KeyboardInterrupt:
            self._end("cancelled", "stopped; replaying again continues from here")
            raise
        except Exception as error:
            self._end("failed", f"{type(error).__name__}: {error}")
            raise
        return self._end("done")

    def _take_up(self, begun: bool) -> Run | None:
        """Take over what an earlier replay left of this run; returns the run if it is complete."""
        name = self.head.run_id
        if self.options.fresh:
            self.store.remove(name)
            return None
        known = self.store.head(name) if self.store.has(RUNS, name) else None
        self.listed = known is not None
        if known is None and not (begun and any(self.store.has(spec, name) for spec in (TEXTS, TURNS))):
            return None
        self.turns = self.store.turns(name)
        self.stored = self.before = len(self.turns)
        if known is not None:
            if known.status == "done" and self.stored == known.turns:
                return Run(known, tuple(self.turns))
            self.head = msgspec.structs.replace(self.head, started=known.started, taken=known.taken, read=known.read)
        self.store.forget_after(name, self.stored)
        return None

    def _expect(self) -> None:
        """Load what the policy needs, and record how long the rest should take."""
        self.expected = expect(self.timeline, self.policy, self.resources, self.before, self.options.expected, self.options.guessed)
        self._say_estimate()
        self.began = self.expected.began

    def _say_estimate(self) -> None:
        self.head = msgspec.structs.replace(self.head, estimated=round(self.head.taken + self.expected.seconds, 4))
        if self.listed:
            self._put_head()

    def _loop(self) -> None:
        self._ask_whether_to_stop()
        last_stored, wait = time.monotonic(), STORE_EVERY
        for turn in replay_turns(
            self.timeline, self.policy, self.resources, tuple(self.turns), progress=self._reading, cancelled=self.options.cancelled
        ):
            self.turns.append(turn)
            if (now := time.monotonic()) - last_stored >= wait:
                self._flush()
                last_stored = time.monotonic()
                wait = max(STORE_EVERY, (last_stored - now) / STORE_SHARE) if STORE_EVERY else 0.0
            if self.expected.correct(self.turns):
                self._say_estimate()
            if self.options.watch:
                self.options.watch(turn, self.timeline.turns)
            self._ask_whether_to_stop()

    def _reading(self, progress: Progress) -> None:
        self.expected.see(progress)
        if self.options.reading:
            self.options.reading(progress)

    def _ask_whether_to_stop(self) -> None:
        if len(self.turns) < self.timeline.turns and self.options.cancelled():
            raise Cancelled(f"stopped before turn {len(self.turns)} of {self.timeline.turns}; replaying again continues from there")

    def _put_head(self) -> None:
        if self.listed:
            self.store.put_head(self.head)
        else:
            self.store.add_head(self.head)
        self.listed = True

    def _flush(self) -> None:
        """Store the newest turns of a run that goes on."""
        if not self.listed:
            self._put_head()
        self._add_turns()

    def _add_turns(self) -> None:
        if self.stored < len(self.turns):
            self.resources.save()
            self.store.add_turns(self.head.run_id, self.turns[self.stored :])
            self.stored = len(self.turns)

    def _end(self, status: Status, error: str = "") -> Run:
        self._add_turns()
        counted = totals(self.timeline, self.turns)
        embeds = "embedder" in self.policy.needs and len(self.turns) > self.before
        if embeds and isinstance(embedder := self.resources.embedder, KeptEmbeddings):
            embedder.flush()
            remember_embedding(self.resources.profile, self.resources.factory.workspace.path, *embedder.work_done())
        taken = round(self.head.taken + time.monotonic() - self.began, 4)
        read = 0 if status == "done" else max(self.head.read, self.expected.turns_read())
        self.head = msgspec.structs.replace(self.head, status=status, error=error, totals=counted, finished=now(), taken=taken, read=read)
        self._put_head()
        remember_commits(self.resources.factory.workspace.path, self.store.commits)
        return Run(self.head, tuple(self.turns))
