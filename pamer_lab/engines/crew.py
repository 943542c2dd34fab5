"""Distributes jobs to the workers of an engine until all are done. If messages are slow, a worker gets several short jobs at once, and more
before it has finished them, so that it never waits for its caller.

A job that asks for another attempt, or whose worker is lost (killed, its node gone, silent for too long, a fault in our program), is tried
up to `ATTEMPTS` times, then reported as lost while the others continue. A retried job is sent alone, so that no job is blamed for
another. Invariant: every job ends, done or lost, unless the caller cancels or no worker starts.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, Queue
from typing import Generic, Protocol, TypeVar

from pamer_lab.engines.interface import Engine, Worker
from pamer_lab.errors import Cancelled, InputError, LabError

ATTEMPTS = 3
"""How often a job is tried before it is given up."""
STARTS = 5
"""Number of workers in a row that fail to start before the crew gives up: no job can be the cause."""
STUCK_VARIABLE = "PAMER_LAB_STUCK_MINUTES"
STUCK_MINUTES = 60.0
"""Minutes of silence after which a worker with a job counts as lost; 0: never."""
LOOK_EVERY = 0.1
"""Seconds between two checks for cancelled runs and silent workers."""
SENT_SECONDS = 3.0
"""Seconds of work that a worker may have at once if its jobs are shorter than that."""
PACE_OF = 16
"""Number of newest jobs from which the duration of the next ones is estimated."""


class CrewNote(Protocol):
    """The fields that every program's notes share."""

    @property
    def finished(self) -> bool:
        """The job ended."""

    @property
    def again(self) -> str:
        """Why the job ended without a result and should be tried again; empty if it should not."""


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
        stopped: str = "stopped; finished work is kept, and running it again continues from there",
        silent: bool = False,
    ) -> None:
        """`silent`: jobs may run for any time without reporting anything."""
        self._engine, self._module, self._notes = engine, module, notes
        self._told, self._lost, self._cancelled, self._stopped = told, lost, cancelled, stopped
        self._queue: Queue[tuple[JobT, int]] = Queue()
        """Jobs with their attempt number. Not a SimpleQueue: if two threads wait, its `get` may exceed its timeout."""
        self._open = 0
        self._seconds: deque[float] = deque(maxlen=PACE_OF)
        """Durations of the newest jobs, except each worker's first, which also loads what it needs."""
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._heard: dict[Worker, float] = {}
        """When each worker with a job last reported something."""
        self._silent: set[Worker] = set()
        """Workers that were killed because they were silent for too long."""
        self._stuck_after = 0.0 if silent else 60 * stuck_minutes()
        self._failed_starts = 0
        """Failed starts since a worker last started."""
        self._fault: BaseException | None = None

    def run(self, jobs: Sequence[JobT], workers: int) -> None:
        """Do all jobs with up to `workers` workers."""
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
                self._end_silent()
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
            warm = False
            while self._open and not self._cancelled():
                if worker is None or not worker.running:
                    worker, warm = self._start(count), False
                if not worker.ready(LOOK_EVERY) and worker.running:
                    continue  # a cluster may have no free resources yet; other workers continue
                if not worker.running:
                    self._count_failed_start(worker)
                    continue
                self._failed_starts = 0
                try:
                    first = self._queue.get(timeout=LOOK_EVERY)
                except Empty:  # another worker may still lose its job
                    continue
                self._work(worker, first, count, warm)
                warm = True
            if worker is not None:
                worker.no_more()
        except BaseException as error:  # from a callback or from starting a worker; it would go unnoticed in a thread
            with self._lock:
                self._fault, self._open = self._fault or error, 0

    def _start(self, count: int) -> Worker:
        worker = self._engine.start(self._module, count)
        self._workers = [*(known for known in self._workers if known.running), worker]
        return worker

    def _count_failed_start(self, worker: Worker) -> None:
        self._failed_starts += 1
        if self._failed_starts >= STARTS:
            raise LabError(f"no worker can start ({worker.why_ended()}); finished work is kept")
        time.sleep(LOOK_EVERY)

    def _end_silent(self) -> None:
        """Kill workers whose job seems to be stuck; the job is then retried like that of any lost worker."""
        now = time.monotonic()
        for worker, last in list(self._heard.items()):
            if self._stuck_after and now - last > self._stuck_after and worker not in self._silent:
                self._silent.add(worker)
                worker.kill()

    def _answers(self, worker: Worker) -> Iterator[NoteT]:
        """A worker's notes, recording the time of the newest one."""
        self._heard[worker] = time.monotonic()
        try:
            for note in worker.answers(self._notes):
                self._heard[worker] = time.monotonic()
                yield note
        finally:
            self._heard.pop(worker, None)

    def _more(self, worker: Worker, has: int, workers: int) -> list[tuple[JobT, int]]:
        """More jobs for a worker once half of its share is done: only if jobs are short, and at most a fair part of those left."""
        if not self._seconds:
            return []
        pace, left = sum(self._seconds) / len(self._seconds), self._queue.qsize()
        fair = max(2, left // (2 * workers)) if workers > 1 else left + has
        wanted = min(worker.ahead, fair, int(SENT_SECONDS / max(pace, 0.001)))
        found: list[tuple[JobT, int]] = []
        while has <= wanted // 2 and has + len(found) < wanted:
            try:
                entry = self._queue.get_nowait()
            except Empty:
                break
            if entry[1] > 1:
                self._queue.put(entry)
                break
            found.append(entry)
        return found

    def _work(self, worker: Worker, first: tuple[JobT, int], workers: int, warm: bool) -> None:
        """Do one job, then further short jobs that are on their first attempt; `warm`: it is not the worker's first job."""
        alone = first[1] > 1
        sent = deque([first, *([] if alone else self._more(worker, 1, workers))])
        began = time.monotonic()
        worker.give([job for job, _ in sent])
        for note in self._answers(worker):
            job, attempt = sent[0]
            if not note.again:
                self._told(job, note)
            if note.again or note.finished:
                sent.popleft()
                now = time.monotonic()
                if warm:
                    self._seconds.append(now - began)
                began, warm = now, True
                self._ended(job, attempt, note.again)
                if not sent:
                    return
                if not alone and self._open and (more := self._more(worker, len(sent), workers)):
                    worker.give([job for job, _ in more])
                    sent += more
        if not self._cancelled() and self._open:
            (job, attempt), *rest = sent
            for entry in rest:
                self._queue.put(entry)
            self._again(job, attempt, self._why(worker))

    def _why(self, worker: Worker) -> str:
        """Why a worker did not finish its job."""
        if worker in self._silent:
            return f"its worker said nothing for {self._stuck_after / 60:g} minutes and was ended"
        return f"its worker ended ({worker.why_ended()})"

    def _ended(self, job: JobT, attempt: int, again: str) -> None:
        if again:
            self._again(job, attempt, again)
        else:
            self._done()

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


def stuck_minutes() -> float:
    """Minutes of silence after which a worker counts as lost: `PAMER_LAB_STUCK_MINUTES`, else `STUCK_MINUTES`."""
    given = os.environ.get(STUCK_VARIABLE, "")
    try:
        found = float(given or STUCK_MINUTES)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise InputError(f"{STUCK_VARIABLE} is a number of minutes, 0 for no limit, not {given[:20]!r}")
    return found
