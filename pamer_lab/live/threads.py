"""The sessions that a proxy knows, and which of them a request continues.

A request continues the session whose complete history it begins with; if there are several, the one with the longest history. A request
that shares only part of a history opens a new session, so that nothing from the other's later history reaches it. Invariant: diverging
histories never share a session, whatever ids their client sends. A holder of the lock of all sessions never waits for a session's lock.
"""

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from pamer_lab.decisions import Item
from pamer_lab.live.logs import GrownError, Logs
from pamer_lab.live.policy import LiveActing
from pamer_lab.live.record import Frame, Opened, Record
from pamer_lab.live.resting import Resting
from pamer_lab.live.whose import Who
from pamer_lab.live.wire import Wire

KNOWN = 500
"""Maximum number of sessions, newest first, that a proxy reads at its start and keeps in memory; the others stay in their files."""
KNOWN_BYTES = 250_000_000
"""Maximum total file size of the sessions in memory."""
ACTING = 64
"""Maximum number of sessions whose policy state stays in memory; the others resume from their record."""

Begin = Callable[[str, str, bool], Opened]


class InOrder:
    """A lock that is granted in the order in which it was requested."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    def __enter__(self) -> None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._waiting[0] is ticket)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._waiting.popleft()
            self._changed.notify_all()


@dataclass
class Thread:
    """One session in this process."""

    record: Record
    place: int
    """How far its file was read or written here, in bytes."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    order: InOrder = field(default_factory=InOrder)
    """Acquired before `lock` for decisions: several may wait for a slow one, and a later request must not be decided first."""
    acting: LiveActing | None = None
    view: tuple[int, tuple[Item, ...]] | None = None
    """The newest request's decision point and the items that were sent; None if it was sent unchanged."""
    unwritten: list[Frame] = field(default_factory=list)
    """Frames that could not be written yet; they are written with the next one."""
    used: float = 0.0
    first: tuple[str, ...] = ()
    """Digests of the request that opened the session, which may not be decided yet."""

    @property
    def line(self) -> Sequence[str]:
        """Digests of the session's history, as known from its requests."""
        return self.record.digests or self.first

    def common(self, digests: Sequence[str]) -> int:
        """Number of units that a request's history and the session's have in common at the start."""
        own = self.line
        return next((at for at, (one, other) in enumerate(zip(own, digests, strict=False)) if one != other), min(len(own), len(digests)))

    def opens_before(self, units: int) -> bool:
        """Whether the first units contain an assistant message."""
        return any(message.role == "assistant" for unit in self.record.units[:units] for message in unit)


class Threads:
    """All sessions of a workspace, found by their sender and history."""

    def __init__(self, logs: Logs, clock: Callable[[], float] = time.time) -> None:
        self.logs, self._clock = logs, clock
        self.lock = threading.RLock()
        self._threads: dict[str, Thread] = {}
        self._resting = Resting()
        for name in logs.names()[:KNOWN]:
            self._load(name)

    def all(self) -> list[Thread]:
        with self.lock:
            return list(self._threads.values())

    def get(self, session: str) -> Thread | None:
        with self.lock:
            resting = session in self._resting.places
            return self._load(session) if resting else self._threads.get(session)

    def places(self) -> dict[str, int]:
        """How far each session's file was read or written here, in bytes."""
        with self.lock:
            return self._resting.places | {name: thread.place for name, thread in self._threads.items()}

    def _load(self, name: str) -> Thread | None:
        self._resting.places.pop(name, None)
        record, place = self.logs.read(name)
        if record is None:
            return None
        self._threads[name] = Thread(record, place, used=record.last)
        return self._threads[name]

    def _wake(self, who: Who, wire: Wire) -> None:
        for name in self._resting.wanted(who, wire):
            self._load(name)

    def find(self, who: Who, wire: Wire, begin: Begin) -> Thread:
        """The session that a request belongs to.

        `begin`: the first frame of a new session, from its name, its parent's, and whether the client has rewritten its history.
        """
        digests = wire.digests
        with self.lock:
            self._wake(who, wire)
            own = self._own(who)
            best = _continued(own, digests)
            if best is None:
                self._look_for_others(who)
                own = self._own(who)
                best = _continued(own, digests)
            if best is not None:
                return best
            parent = max(own, key=lambda thread: thread.common(digests), default=None)
            shared = parent.common(digests) if parent else 0
            shares = parent is not None and parent.opens_before(shared)
            rewritten = parent is not None and (shares or bool(who.named)) and 2 * shared < len(digests)
            return self.create(who, wire, begin, parent.record.session if parent and shares else "", rewritten)

    def continues(self, thread: Thread, wire: Wire) -> bool:
        """Whether a request still begins with a session's complete history; the caller holds the session's lock."""
        size = self.logs.size(thread.record.session)
        if thread.place and not size:  # its file was deleted
            with self.lock:
                self._threads.pop(thread.record.session, None)
            return False
        if size > thread.place:
            self.refresh(thread)
        return thread.common(wire.digests) == len(thread.line)

    def completed(self, who: Who, wire: Wire) -> Wire:
        """A request whose history the provider keeps, with that history in front if it was recorded here."""
        if not wire.kept_elsewhere:
            return wire
        response = wire.fields.get("previous_response_id")
        with self.lock:
            self._wake(who, wire)
            own = [thread.record for thread in self._own(who)]
        for record in sorted(own, key=lambda record: record.asked[-1].at if record.asked else 0.0, reverse=True):
            for answer in reversed(list(record.answers.values())):
                if answer.response_id and response in (None, answer.response_id):
                    return wire.after(*record.up_to(answer))
        return wire

    def _own(self, who: Who) -> list[Thread]:
        return [
            thread
            for thread in self._threads.values()
            if (thread.record.opened.scope, thread.record.opened.named) == (who.scope, who.named)
        ]

    def _look_for_others(self, who: Who) -> None:
        """Read what other processes have added, except for sessions locked in this process: the holder of the lock reads those."""
        for name in self.logs.names()[:KNOWN]:
            thread = self._threads.get(name)
            if thread is None and name not in self._resting.places:
                self._load(name)
            elif thread is None:
                continue
            elif self.logs.size(name) > thread.place and thread.lock.acquire(blocking=False):
                try:
                    self.refresh(thread)
                finally:
                    thread.lock.release()

    def refresh(self, thread: Thread) -> bool:
        """Read what another process added to a session; True if there was anything."""
        with thread.lock:
            before = thread.place
            _, thread.place = self.logs.read(thread.record.session, thread.record, before)
            if thread.place > before:
                thread.acting, thread.view = None, None
            return thread.place > before

    def create(self, who: Who, wire: Wire, begin: Begin, parent: str, rewritten: bool = False) -> Thread:
        first = hashlib.sha256("\0".join([who.scope, who.named, *wire.digests[:1], str(self._clock())]).encode()).hexdigest()
        wanted = who.label or f"s-{first[:12]}"
        number = 1
        while True:
            name = wanted if number == 1 else f"{wanted[:70]}~{number}"
            number += 1
            if name in self._threads or self.logs.size(name):
                continue
            frame = begin(name, parent, rewritten)
            thread = Thread(Record(frame), 0, first=tuple(wire.digests))
            try:
                thread.place = self.logs.create(name, frame)
            except FileExistsError:
                continue
            except OSError:  # a full disk; the frame is written later with those that follow
                thread.unwritten.append(frame)
            self._threads[name] = thread
            return thread

    def append(self, thread: Thread, frame: Frame) -> str:
        """Add a frame to the session in memory and in its file; unwritten frames are retried later. Returns the error, or nothing."""
        with thread.lock:
            thread.record.add(frame)
            thread.unwritten.append(frame)
            return self.write(thread)

    def write(self, thread: Thread) -> str:
        """Write the waiting frames; returns the error, or nothing."""
        name = thread.record.session
        with thread.lock:
            for _ in range(3):
                if not thread.unwritten:
                    return ""
                try:
                    if isinstance(thread.unwritten[0], Opened):
                        thread.place = self.logs.create(name, thread.unwritten[0])
                        thread.unwritten.pop(0)
                        continue
                    thread.place = self.logs.append(name, thread.place, thread.unwritten)
                    thread.unwritten = []
                    return ""
                except GrownError:
                    thread.record, thread.place = _read_again(self.logs, name, thread.unwritten)
                    thread.acting, thread.view = None, None
                except (OSError, TimeoutError) as error:
                    return f"the record could not be written ({getattr(error, 'strerror', None) or error})"
        return "the record could not be written (other processes keep adding to it)"

    def tidy(self) -> None:
        """Free memory, least recently used first: policy state beyond `ACTING`, then sessions beyond `KNOWN` or `KNOWN_BYTES`."""
        own = (thread for thread in self.all() if thread.record.opened.how != "unread")
        newest = sorted(own, key=lambda thread: thread.used, reverse=True)
        for thread in [thread for thread in newest if thread.acting is not None][ACTING:]:
            if thread.lock.acquire(blocking=False):
                thread.acting = None
                thread.lock.release()
        kept = sum(size <= KNOWN_BYTES for size in accumulate(thread.place for thread in newest))
        for thread in newest[max(1, min(kept, KNOWN)) :]:
            self._rest(thread)

    def _rest(self, thread: Thread) -> None:
        """Remove a session from memory, unless it is in use or has unwritten frames."""
        with self.lock:
            if thread.lock.acquire(blocking=False):
                try:
                    if not thread.unwritten and self._threads.get(thread.record.session) is thread:
                        self._resting.add(thread.record, thread.place)
                        del self._threads[thread.record.session]
                finally:
                    thread.lock.release()


def _continued(own: list[Thread], digests: Sequence[str]) -> Thread | None:
    """The session with the longest history that these units begin with."""
    found = [thread for thread in own if 0 < len(thread.line) <= len(digests) and thread.common(digests) == len(thread.line)]
    return max(found, key=lambda thread: len(thread.line), default=None)


def _read_again(logs: Logs, name: str, ours: Sequence[Frame]) -> tuple[Record, int]:
    """The session with another process's frames, followed by our own unwritten ones."""
    record, place = logs.read(name)
    if record is None:
        raise OSError(f"the session file {name} no longer exists")
    for frame in ours:
        if not isinstance(frame, Opened):
            record.add(frame)
    return record, place
