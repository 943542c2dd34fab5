"""Long work in the background: in a thread, one at a time, or in separate processes that answer in JSON lines.

Replays and studies report the same `Progress` and are stopped the same way. Knows nothing of what the work is. Invariant: work that
was started ends and sets `ended`, whatever happens in it; while one runs, no other starts, but others can wait for it.
"""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from pamer_lab.errors import LabError

LINES_VARIABLE = "PAMER_LAB_LINES"
"""Set for a command that another process runs: it then writes everything it says as `Line`s on stdout."""
PATIENCE = 20.0
"""Seconds that a stopped process has to save its work before it is killed."""
LONG = 90.0
"""Seconds from which the time left is given in minutes."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far some work is."""

    done: int
    total: int
    what: str
    """What is counted, in the plural: `turns`, `tokens`."""
    seconds: float = 0.0
    """Seconds so far; 0 where they say nothing about the speed."""
    there: float = 0.0
    """Share of the complete work that was done before, and is not in `done` and `total`."""
    seconds_left: float | None = None
    """None while nothing is known."""

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def share_of_all(self) -> float:
        """From 0 to 1, with what was done before."""
        return self.there + (1 - self.there) * self.share

    @property
    def counted(self) -> str:
        return f"{self.done:,} of {self.total:,} {self.what}"

    @property
    def line(self) -> str:
        """One line for people."""
        speed = f", {self.done / self.seconds:,.0f} {self.what}/s" if self.seconds else ""
        return f"{self.counted} ({self.share:.0%}){speed}{self.time_left}"

    @property
    def time_left(self) -> str:
        """In words, after a comma; empty if unknown."""
        seconds = self.seconds_left
        if seconds is None:
            return ""
        return f", about {seconds:,.0f} s left" if seconds < LONG else f", about {seconds / 60:,.0f} min left"


Say = Callable[[str | Progress], None]
"""Takes a sentence, or progress, for whoever waits."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a command that runs for another process; one of the fields is set."""

    said: str = ""
    progress: Progress | None = None
    result: dict[str, Any] | None = None
    error: str = ""
    """Why the command failed, in a sentence."""


@dataclass(kw_only=True)
class Work:
    """Work that is running or has ended."""

    progress: Progress | None = field(default=None, compare=False)
    error: str = field(default="", compare=False)
    """Why it ended early; empty while it runs and when it is done."""
    stopping: threading.Event = field(default_factory=threading.Event, compare=False)
    ended: threading.Event = field(default_factory=threading.Event, compare=False)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    def stop(self) -> None:
        """Ask it to end; what is finished is kept."""
        self.stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended or the time is over; True if it has ended."""
        return self.ended.wait(seconds)


Kind = TypeVar("Kind", bound=Work)


class OneAtATime(Generic[Kind]):
    """Runs work in a separate thread, one at a time, and queues the rest."""

    def __init__(self) -> None:
        self.latest: Kind | None = None
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Kind, Callable[[Kind], None]]] = deque()

    @property
    def current(self) -> Kind | None:
        """What runs now."""
        return self.latest if self.latest is not None and self.latest.running else None

    @property
    def waiting(self) -> list[Kind]:
        """Queued work, in order, without what was stopped before it began."""
        with self._lock:
            return [work for work, _ in self._waiting if not work.stopping.is_set()]

    def queue(self, make: Callable[[], Kind], run: Callable[[Kind], None]) -> Kind:
        """Make some work and start it, or queue it while other work runs; returns equal work that is running or queued instead, if any."""
        with self._lock:
            work, current = make(), self.current
            if current is None:
                return self._start(work, run)
            known = [current, *(other for other, _ in self._waiting)]
            same = next((other for other in known if other == work and not other.stopping.is_set()), None)
            if same is None:
                self._waiting.append((work, run))
            return same or work

    def _start(self, work: Kind, run: Callable[[Kind], None]) -> Kind:
        self.latest = work
        threading.Thread(target=self._work_off, args=(work, run), daemon=True).start()
        return work

    def _work_off(self, work: Kind, run: Callable[[Kind], None]) -> None:
        while True:
            _to_the_end(work, run)
            with self._lock:  # one ends and the next begins at once, so that nothing else starts in between
                work.ended.set()
                while self._waiting and self._waiting[0][0].stopping.is_set():
                    self._waiting.popleft()[0].ended.set()
                if not self._waiting:
                    return
                work, run = self._waiting.popleft()
                self.latest = work


def _to_the_end(work: Kind, run: Callable[[Kind], None]) -> None:
    try:
        run(work)
    except LabError as error:
        work.error = str(error)
    except Exception as error:  # shown to the reader, who would otherwise wait for a thread that is gone
        work.error = f"it failed ({type(error).__name__}: {error}); what was finished is kept"


def own_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which another Python finds the same modules as this one."""
    path = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH", "")]))
    return {**(environment or os.environ), "PYTHONPATH": path}


Answer = TypeVar("Answer")


class Process:
    """One of our programs in a separate process, JSON lines in and out.

    It is ended by SIGTERM, which it takes as an interrupt (`stop_when_terminated`), and killed when it takes too long or when
    this process ends.
    """

    def __init__(self, *words: str, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=own_environment(environment),
        )
        atexit.register(self._process.kill)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def send(self, value: object) -> None:
        """Send one line; if the process is gone, `answers` ends at once."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(msgspec.json.encode(value).decode() + "\n")
            self._process.stdin.flush()

    def no_more(self) -> None:
        """Close its input: nothing more will be sent."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def answers(self, kind: type[Answer]) -> Iterator[Answer]:
        """Its answers, until it ends; a line that is not such a value comes from some library and is left out."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                yield msgspec.json.decode(line, type=kind)
            except msgspec.MsgspecError:
                continue

    def interrupt(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        """End it at once; what it was doing is lost."""
        self._process.kill()

    def stop(self) -> None:
        """Interrupt it, so that it saves finished work, and kill it if it takes too long."""
        self.interrupt()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self.wait()

    def stop_on(self, stopping: threading.Event) -> None:
        """Stop it as soon as `stopping` is set."""

        def watch() -> None:
            while self.running:
                if stopping.wait(0.2):
                    self.stop()

        threading.Thread(target=watch, daemon=True).start()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = self._process.wait()
        atexit.unregister(self._process.kill)
        return code


def stop_when_terminated(*, by_hand: bool = False) -> None:
    """From now on, SIGTERM interrupts this process as Ctrl-C does, once: while it saves its work, further signals are ignored.

    Ctrl-C reaches a command and its workers, and the command then ends the workers as well. `by_hand`: somebody runs this
    process in a terminal, and a second Ctrl-C ends it at once.
    """
    heard = (signal.SIGTERM,) if by_hand else (signal.SIGTERM, signal.SIGINT)

    def interrupt(number: int, frame: object) -> None:
        for one in heard:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    for one in heard:
        signal.signal(one, interrupt)
