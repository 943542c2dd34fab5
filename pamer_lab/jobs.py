"""Work that runs beside its caller: look at it, stop it, wait for it; one at a time.

For pages, whose script ends long before a replay or a study does. Knows threads and events, nothing of what the work is. What
always holds: work that was started ends, whatever happens in it, and says so in `ended`; while one runs, no other starts.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar


@dataclass(kw_only=True)
class Work:
    """Something under way or ended."""

    error: str = ""
    """Why it ended before its time; empty while it runs and when it is done."""
    stopping: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    def stop(self) -> None:
        """Ask it to end; what is finished is kept."""
        self.stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Until it has ended or the time is over; True if it has."""
        return self.ended.wait(seconds)


Kind = TypeVar("Kind", bound=Work)


class OneAtATime(Generic[Kind]):
    """Starts work in a thread of its own."""

    def __init__(self) -> None:
        self.latest: Kind | None = None
        self._lock = threading.Lock()

    @property
    def current(self) -> Kind | None:
        """What runs now."""
        return self.latest if self.latest is not None and self.latest.running else None

    def begin(self, make: Callable[[], Kind], run: Callable[[Kind], None]) -> Kind:
        """Make and start some work; while one runs, that one is returned instead."""
        with self._lock:
            if self.current is not None:
                return self.current
            work = self.latest = make()
            threading.Thread(target=_to_the_end, args=(work, run), daemon=True).start()
            return work


def _to_the_end(work: Kind, run: Callable[[Kind], None]) -> None:
    try:
        run(work)
    finally:
        work.ended.set()
