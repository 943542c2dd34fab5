"""A call with its answer, and the thread that reads and records calls in the background.

Parsing 200 KB blocks the interpreter for milliseconds, which would delay this call and all others. So a call is read after its answer is
out, or while a slow model is working. Invariant: calls are read in the order of arrival, each before its own answer.
"""

import asyncio
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pamer_lab.live.call import Call
from pamer_lab.live.desk import Desk
from pamer_lab.live.usage import MOST_BYTES

HEAD_START = 0.05
"""Seconds after which a call is read, if its answer is not complete before."""


class Exchange:
    """One call and the answer to it, as far as it has arrived."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.status, self.started, self.error = 0, False, ""
        self.headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self._size = 0
        self._began = time.perf_counter()
        self.first: float | None = None
        self.ended: float | None = None

    def keep(self, chunk: bytes) -> None:
        """A copy for the record."""
        self._size += len(chunk)
        if self._size <= MOST_BYTES:
            self._chunks.append(chunk)

    def record(self, desk: Desk) -> None:
        """Hand the answer to the desk."""
        found = {"first_byte": self.first, "total": self.ended}
        ms = {name: (at - self._began) * 1000 for name, at in found.items() if at is not None}
        desk.answered(self.call, self.status, self.headers, b"".join(self._chunks), ms, self.error)


class Watcher:
    """Reads and records calls one after another."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._thread = ThreadPoolExecutor(1, "pamer-watch")
        self._unread: deque[Call] = deque()
        self._working: set[Future[Any]] = set()

    @property
    def busy(self) -> bool:
        return bool(self._unread or self._working)

    def expect(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        """Register a call; it is read after `HEAD_START`, or when it ends."""
        self._unread.append(call)
        loop.call_later(HEAD_START, self._read, call)

    def ended(self, exchange: Exchange) -> None:
        """Record a call that has its answer, or will get none."""
        self._read(exchange.call)
        self._submit(exchange.record, self._desk)

    def _read(self, call: Call) -> None:
        """Read the waiting calls, up to and including this one."""
        while call in self._unread:
            self._submit(self._desk.take, self._unread.popleft())

    def _submit(self, *work: Any) -> None:
        future = self._thread.submit(*work)
        self._working.add(future)
        future.add_done_callback(self._working.discard)

    async def settled(self) -> None:
        """Wait until everything that was answered is recorded."""
        while self._working:
            await asyncio.wait({asyncio.wrap_future(future) for future in tuple(self._working)})

    def close(self) -> None:
        self._thread.shutdown()
