"""Leases in a workspace that several machines share: one row per name, with its owner and expiry time.

Taken, renewed and released by conditional commits, of which exactly one wins. A dead owner's lease expires; an owner that comes
back, such as a batch that gives a lost worker's trace to another, takes its own lease again at once. Machines' clocks must agree
within seconds.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa

from pamer_lab.errors import LabError
from pamer_lab.storage.database import Database
from pamer_lab.storage.specs import TableSpec, equals

LEASES = TableSpec("leases", pa.schema([("name", pa.string()), ("owner", pa.string()), ("until", pa.float64())]), ("name",))
SECONDS = 60.0
"""How long a lease lasts unless it is renewed, which happens three times in that time."""


@contextmanager
def lease(database: Database, name: str, owner: str, seconds: float = SECONDS) -> Iterator[bool]:
    """Hold a name while the block runs; yields False if somebody else holds it."""
    if not take(database, name, owner, seconds):
        yield False
        return
    over = threading.Event()

    def renew() -> None:
        while not over.wait(seconds / 3):
            with suppress(LabError):  # the next time may work; the rows themselves are safe without it
                take(database, name, owner, seconds)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield True
    finally:
        over.set()
        thread.join()
        with suppress(LabError):
            database.delete(LEASES, f"{equals('name', name)} AND {equals('owner', owner)}")


def take(database: Database, name: str, owner: str, seconds: float = SECONDS) -> bool:
    """Take or renew a lease; False if another owner's has not expired."""
    now = time.time()
    mine = f"target.{equals('owner', owner)} OR target.until < {now!r}"
    return database.replace_if(LEASES, {"name": name, "owner": owner, "until": now + seconds}, mine)
