"""How far a batch of replays is, what became of each run, and the time left. Starts nothing."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pamer_lab.counts import counted
from pamer_lab.jobs import Progress
from pamer_lab.runs.estimate import Cost
from pamer_lab.runs.worker import Note

BELIEVED = 5.0
"""Weight of the estimate, in seconds of reading, against the time measured: the first steps come unevenly."""
FORECAST_EVERY = 1.0
"""Seconds between two sums of the time left over all runs."""


@dataclass(frozen=True, kw_only=True)
class BatchProgress(Progress):
    """How far a batch is; the time left follows from the measured time per turn of each policy."""

    what: str = "turns"
    runs_done: int
    runs: int
    latest: str = ""
    """The trace and policy that made progress last."""
    doing: str = ""
    """What a worker does before its next turn, such as loading a model; empty while turns come."""
    read: int = 0
    """Tokens of the trace whose states have been read, while more are being read."""
    to_read: int = 0
    ahead: int = 0
    """Replays and studies ahead in the queue."""

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
    """Turns that are done, by trace and policy."""
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    expected: dict[tuple[str, str], Cost] = field(default_factory=dict)
    """What each run should take, by trace and policy."""
    read: dict[tuple[str, str], float] = field(default_factory=dict)
    """Share of a run's states that has been read."""
    begun: set[tuple[str, str]] = field(default_factory=set)
    """Runs that are reading or have turns; the time before that was loading, and says nothing about their pace."""
    paces: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Turns and seconds seen, by policy."""
    reading: tuple[float, float] = (0.0, 0.0)
    """Expected and actual seconds of reading so far."""
    turns_done: int = 0
    total: int = 0
    """Turns of all runs."""
    forecast: tuple[float, float] = (float("-inf"), 0.0)
    """When the time left was last summed over all runs, and the sum."""

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

    def known_seconds(self, trace_id: str, policies: Sequence[str]) -> dict[str, float]:
        """What a trace's runs should take, by policy; those that were only guessed are left out."""
        costs = {policy: self.expected.get((trace_id, policy)) for policy in policies}
        return {policy: cost.seconds for policy, cost in costs.items() if cost is not None and cost.known}

    def unsure(self, trace_id: str, policies: Sequence[str]) -> tuple[str, ...]:
        """Policies whose time on this very trace is a guess."""
        return tuple(policy for policy in policies if not self.cost((trace_id, policy)).sure)

    def seconds_left(self) -> float:
        """Seconds left for all runs, summed only now and then, since there may be many."""
        now = time.monotonic()
        if now - self.forecast[0] >= FORECAST_EVERY or len(self.outcomes) == len(self.lengths) * len(self.policies):
            self.forecast = (now, self._added_up())
        return self.forecast[1]

    def _added_up(self) -> float:
        """The estimate, corrected by how long reading and each policy's turns actually take."""
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
