"""One queue per workspace for work that needs all cores: runs from pages and commands and studies are served first come, first served.

A place in the queue is a file `locks/queue/TIME-PID`, locked by the process that waits or works; the system releases a dead process's
lock, and whoever finds such a file removes it. Waiting never fails: in a folder that cannot be written there is no queue.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from pamer_lab.errors import Cancelled

LOOK_EVERY = 0.2
"""Seconds between two looks at who is ahead."""


@contextmanager
def in_line(
    folder: Path, *, waiting: Callable[[int], None] = lambda ahead: None, cancelled: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Wait until nobody who came earlier works in this workspace, then work; `waiting` is called with the number ahead."""
    if not folder.is_dir():  # nobody works there, and waiting must not create a workspace
        yield
        return
    queue = folder / "locks" / "queue"
    own = queue / f"{time.time_ns():020d}-{os.getpid()}"
    lock = FileLock(own)
    try:
        queue.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except OSError:
        yield
        return
    try:
        while ahead := sum(_is_held(place) for place in sorted(queue.iterdir()) if place.name < own.name):
            waiting(ahead)
            if cancelled():
                raise Cancelled("stopped while waiting for other work in this workspace")
            time.sleep(LOOK_EVERY)
        yield
    finally:
        lock.release()
        own.unlink(missing_ok=True)


def _is_held(place: Path) -> bool:
    """Whether a place in the queue is taken; one that a dead process left is removed."""
    other = FileLock(place)
    try:
        other.acquire(timeout=0)
    except (Timeout, OSError):
        return place.exists()
    other.release()
    with suppress(OSError):
        place.unlink(missing_ok=True)
    return False
