"""A local cache of what was read from an object store: one Arrow file per query and table version, of bounded size.

A version never changes, so cached answers are never stale; the least recently used go first. A file that cannot be used is read
again. `PAMER_LAB_READ_CACHE_MB` sets the size (0: none).
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from pamer_lab.errors import LabError
from pamer_lab.storage.files import write_whole

VARIABLE = "PAMER_LAB_READ_CACHE_MB"
DEFAULT_MB = 2_000
LARGEST_SHARE = 0.25
"""Share of the cache that one answer may take; a larger one is not cached."""


class ReadCache:
    """The cached answers of one database."""

    def __init__(self, folder: Path, uri: str) -> None:
        self._folder, self._uri = folder, uri
        given = os.environ.get(VARIABLE, "")
        self._most = (int(given) if given.isdecimal() else DEFAULT_MB) * 1_000_000

    def get(self, key: Sequence[object], read: Callable[[], pa.Table]) -> pa.Table:
        """The cached answer to a query, or a new one."""
        if not self._most:
            return read()
        name = hashlib.sha256("\0".join([self._uri, *map(str, key)]).encode()).hexdigest()
        path = self._folder / f"{name}.arrow"
        with suppress(OSError, pa.ArrowInvalid):
            with pa.OSFile(str(path)) as file:
                found = pa.ipc.open_file(file).read_all()
            os.utime(path)
            return found
        table = read()
        self._keep(path, table)
        return table

    def _keep(self, path: Path, table: pa.Table) -> None:
        if table.nbytes > self._most * LARGEST_SHARE:
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        with suppress(OSError, LabError):
            write_whole(path, sink.getvalue().to_pybytes(), parents=True)
            self._shrink()

    def _shrink(self) -> None:
        """Remove the least recently used answers until the rest fits."""
        files = sorted((found.st_mtime_ns, found.st_size, path) for path in self._folder.glob("*.arrow") if (found := path.stat()))
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self._most:
                return
            path.unlink(missing_ok=True)
            total -= size
