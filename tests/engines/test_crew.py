"""Jobs on either engine: kept workers, lost workers, another attempt, and stopping."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from pamer_lab.engines import Engine
from pamer_lab.engines.crew import ATTEMPTS, STUCK_VARIABLE, Crew, stuck_minutes
from pamer_lab.errors import Cancelled, InputError, LabError
from tests.engines.program import Job, Note

PROGRAM = "tests.engines.program"


class Heard:
    """What a crew told."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Note]] = []
        self.lost: dict[str, str] = {}

    def crew(self, engine: Engine, cancelled: Callable[[], bool] = lambda: False) -> Crew[Job, Note]:
        def told(job: Job, note: Note) -> None:
            self.notes.append((job.name, note))

        def lost(job: Job, reason: str) -> None:
            self.lost[job.name] = reason

        return Crew(engine, PROGRAM, Note, told, lost, cancelled=cancelled)

    def done(self) -> list[str]:
        return sorted(name for name, note in self.notes if note.finished)

    def words(self, place: int) -> set[str]:
        return {note.value.split()[place] for _, note in self.notes if note.value and note.value != "waiting"}


def test_one_worker_does_all_jobs_and_is_kept(engine: Engine, tmp_path: Path) -> None:
    heard = Heard()
    heard.crew(engine).run([Job(f"j{number}", str(tmp_path)) for number in range(4)], 1)
    assert heard.done() == ["j0", "j1", "j2", "j3"] and not heard.lost
    assert len(heard.words(4)) == 1, "one process did them all, so that its models stay loaded"
    assert heard.words(6) == {os.environ.get("OMP_NUM_THREADS", str(engine.capacity()))}, "one worker has all cores"


def test_a_lost_worker_a_fault_and_a_bad_store_are_tried_again_and_then_reported_by_name(engine: Engine, tmp_path: Path) -> None:
    heard, folder = Heard(), str(tmp_path)
    jobs = [
        Job("killed-once", folder, deaths=1),
        Job("poisoned", folder, deaths=99),
        Job("faulty-once", folder, faults=1),
        Job("away-twice", folder, again=2),
        Job("away", folder, again=99),
        Job("healthy", folder),
    ]
    heard.crew(engine).run(jobs, 2)
    assert heard.done() == ["away-twice", "faulty-once", "healthy", "killed-once"]
    assert set(heard.lost) == {"poisoned", "away"} and "the store was away" in heard.lost["away"]
    attempts = {job.name: len(list(tmp_path.glob(f"{job.name}.*"))) for job in jobs}
    assert attempts == {
        "killed-once": 2,
        "poisoned": ATTEMPTS,
        "faulty-once": 2,
        "away-twice": 3,
        "away": ATTEMPTS,
        "healthy": 1,
    }


def test_a_crew_that_is_cancelled_stops_its_workers(engine: Engine, tmp_path: Path) -> None:
    heard = Heard()
    waits = Job("waits", str(tmp_path), wait_for=str(tmp_path / "never"))
    with pytest.raises(Cancelled):
        heard.crew(engine, cancelled=lambda: len(heard.notes) > 3).run([waits, Job("next", str(tmp_path))], 1)
    assert heard.done() == [] and not list(tmp_path.glob("next.*"))


def test_a_listener_that_fails_ends_the_crew_with_its_error(engine: Engine, tmp_path: Path) -> None:
    def told(job: Job, note: Note) -> None:
        raise RuntimeError("the listener failed")

    crew: Crew[Job, Note] = Crew(engine, PROGRAM, Note, told, lambda job, reason: None)
    with pytest.raises(RuntimeError, match="the listener failed"):
        crew.run([Job("one", str(tmp_path)), Job("two", str(tmp_path))], 1)


class Quick:
    """A worker that does each job at once when asked for its next note, and an engine of such workers.

    `sent`: jobs of each message; `waiting`: how many jobs it had left at the end of each."""

    name, ahead, running = "quick", 64, True

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.has = 0
        self.waiting: list[int] = []

    def start(self, module: str, workers: int) -> "Quick":
        return self

    def ready(self, seconds: float) -> bool:
        return True

    def give(self, jobs: Sequence[object]) -> None:
        self.sent.append(len(jobs))
        self.has += len(jobs)

    def answers(self, kind: type[Note]) -> Iterator[Note]:
        while self.has:
            self.has -= 1
            self.waiting.append(self.has)
            yield Note(finished=True)

    def no_more(self) -> None:
        """Nothing to end."""

    def why_ended(self) -> str:
        return "as the test wants"

    interrupt = stop = kill = no_more


class Silent(Quick):
    """A worker that says nothing about a job named `hangs`, until it is killed; `hangs`: how often, of all workers."""

    def __init__(self, hangs: list[None]) -> None:
        super().__init__()
        self.hangs, self.killed, self.jobs = hangs, threading.Event(), deque[Job]()

    @property
    def running(self) -> bool:  # type: ignore[override]
        return not self.killed.is_set()

    def give(self, jobs: Sequence[object]) -> None:
        self.jobs += cast(Sequence[Job], jobs)

    def answers(self, kind: type[Note]) -> Iterator[Note]:
        while self.jobs:
            if self.jobs.popleft().name == "hangs" and self.hangs:
                self.hangs.pop()
                self.killed.wait()
                return
            yield Note(finished=True)

    def kill(self) -> None:
        self.killed.set()


class Silences:
    """An engine of such workers."""

    name = "silences"

    def __init__(self, hangs: int) -> None:
        self.hangs, self.workers = [None] * hangs, list[Silent]()

    def start(self, module: str, workers: int) -> Silent:
        self.workers.append(Silent(self.hangs))
        return self.workers[-1]


class Unable(Quick):
    """A worker that ends before it can take a job."""

    running = False


def test_a_single_worker_is_sent_short_jobs_before_it_has_done_the_last() -> None:
    quick, told = Quick(), list[Job]()
    crew: Crew[Job, Note] = Crew(cast(Engine, quick), "", Note, lambda job, note: told.append(job), lambda job, why: None)
    crew.run([Job(str(number), "") for number in range(200)], 1)
    assert quick.sent == [1, 1, 64, 32, 32, 32, 32, 6] and [job.name for job in told] == [str(number) for number in range(200)]
    assert [number for number, left in enumerate(quick.waiting) if not left] == [0, 1, 199], "it waits for a message only at first"


@pytest.mark.parametrize("attempts", [1, ATTEMPTS])
def test_a_worker_that_says_nothing_for_too_long_is_ended_and_its_job_tried_again(attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STUCK_VARIABLE, "0.002")
    heard, engine = Heard(), Silences(attempts)
    heard.crew(cast(Engine, engine)).run([Job("hangs", ""), Job("next", "")], 1)
    assert heard.done() == (["next"] if attempts == ATTEMPTS else ["hangs", "next"])
    assert "0.002" in heard.lost["hangs"] if attempts == ATTEMPTS else not heard.lost
    assert not engine.hangs and [worker.killed.is_set() for worker in engine.workers][:attempts] == [True] * attempts


def test_workers_that_cannot_start_end_the_crew_and_blame_no_job() -> None:
    heard, unable = Heard(), Unable()
    with pytest.raises(LabError, match="as the test wants"):
        heard.crew(cast(Engine, unable)).run([Job(str(number), "") for number in range(50)], 2)
    assert not heard.lost and not heard.notes and not unable.sent


@pytest.mark.parametrize("given", ["soon", "-1", "nan", "inf"])
def test_a_time_of_silence_that_is_no_number_of_minutes_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STUCK_VARIABLE, given)
    with pytest.raises(InputError, match=STUCK_VARIABLE):
        stuck_minutes()
    monkeypatch.setenv(STUCK_VARIABLE, "0")
    assert stuck_minutes() == 0
