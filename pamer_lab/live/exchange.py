"""A call with what came back, and the thread that reads and records calls which nothing waits for.

Reading 200 KB takes the interpreter for milliseconds, which the call itself and all others would wait for. So a call is read when its
answer is out, or while a slow model thinks. Invariant: calls are read in the order in which they came, each before its own answer.
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
"""Seconds that a call has for itself before it is read; a model that answers sooner is waited for."""


class Exchange:
    """One call and what has come of it."""

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
        """Give the desk what came back."""
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
        """A call is on its way; it is read after its head start, or when it ends."""
        self._unread.append(call)
        loop.call_later(HEAD_START, self._read, call)

    def ended(self, exchange: Exchange) -> None:
        """A call has its answer, or will get none."""
        self._read(exchange.call)
        self._submit(exchange.record, self._desk)

    def _read(self, call: Call) -> None:
        """Read the calls that wait, up to this one."""
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
