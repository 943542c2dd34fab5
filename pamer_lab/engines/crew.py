"""Jobs given to the workers of an engine, one at a time each, until all are done.

A job whose worker is lost (killed, its node gone, a fault in our program), or that says it is worth another attempt, is given to a
fresh worker, `ATTEMPTS` times in all; then it is reported as lost and the others go on. Invariant: every job ends, done or lost, unless
the caller cancels.
"""

import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from pamer_lab.engines.interface import Engine, Worker
from pamer_lab.errors import Cancelled

ATTEMPTS = 3
"""How often a job is tried before it is given up."""
LOOK_EVERY = 0.1
"""Seconds between two looks at whether to stop."""


class CrewNote(Protocol):
    """What every program's notes have."""

    @property
    def finished(self) -> bool:
        """The job ended."""

    @property
    def again(self) -> str:
        """Why the job, though it ended, is worth another attempt; empty: it is not."""


JobT = TypeVar("JobT")
NoteT = TypeVar("NoteT", bound=CrewNote)


class Crew(Generic[JobT, NoteT]):
    """The workers of one batch."""

    def __init__(
        self,
        engine: Engine,
        module: str,
        notes: type[NoteT],
        told: Callable[[JobT, NoteT], None],
        lost: Callable[[JobT, str], None],
        *,
        cancelled: Callable[[], bool] = lambda: False,
        stopped: str = "stopped; finished work is kept, and doing the same again goes on from there",
    ) -> None:
        self._engine, self._module, self._notes = engine, module, notes
        self._told, self._lost, self._cancelled, self._stopped = told, lost, cancelled, stopped
        self._queue: SimpleQueue[tuple[JobT, int]] = SimpleQueue()
        self._open = 0
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._fault: BaseException | None = None

    def run(self, jobs: Sequence[JobT], workers: int) -> None:
        """Do all jobs with so many workers."""
        for job in jobs:
            self._queue.put((job, 1))
        self._open = len(jobs)
        count = max(1, min(workers, len(jobs)))
        threads = [threading.Thread(target=self._serve, args=(count,), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                next(thread for thread in threads if thread.is_alive() or thread is threads[-1]).join(LOOK_EVERY)
                if self._cancelled():
                    raise Cancelled(self._stopped)
        finally:
            with self._lock:
                self._open = 0
            for worker in self._workers:
                worker.interrupt()
            for worker in self._workers:
                worker.stop()
            for thread in threads:
                thread.join(10)
        if self._fault is not None:
            raise self._fault

    def _serve(self, count: int) -> None:
        try:
            worker: Worker | None = None
            while self._open and not self._cancelled():
                if worker is None or not worker.running:
                    worker = self._start(count)
                if not worker.ready(LOOK_EVERY) and worker.running:
                    continue  # a cluster may have no room yet; others work meanwhile
                try:
                    job, attempt = self._queue.get(timeout=LOOK_EVERY)
                except Empty:  # another worker may yet lose its job
                    continue
                self._work(worker, job, attempt)
            if worker is not None:
                worker.no_more()
        except BaseException as error:  # of the caller's listeners, or of starting a worker: nobody would notice in a thread
            with self._lock:
                self._fault, self._open = self._fault or error, 0

    def _start(self, count: int) -> Worker:
        worker = self._engine.start(self._module, count)
        self._workers = [*(known for known in self._workers if known.running), worker]
        return worker

    def _work(self, worker: Worker, job: JobT, attempt: int) -> None:
        worker.send(job)
        for note in worker.answers(self._notes):
            if note.again:
                self._again(job, attempt, note.again)
                return
            self._told(job, note)
            if note.finished:
                self._done()
                return
        if not self._cancelled() and self._open:
            self._again(job, attempt, f"its worker ended ({worker.why_ended()})")

    def _again(self, job: JobT, attempt: int, reason: str) -> None:
        if attempt < ATTEMPTS:
            time.sleep(LOOK_EVERY * attempt)
            self._queue.put((job, attempt + 1))
            return
        self._lost(job, f"{reason}, {ATTEMPTS} times")
        self._done()

    def _done(self) -> None:
        with self._lock:
            self._open = max(0, self._open - 1)
