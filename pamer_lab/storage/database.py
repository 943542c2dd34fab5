"""The rows of a LanceDB database: read and written by key, each write one atomic commit.

What a table looks like is its `TableSpec`; filters are made by `equals` and `is_in`. A write that loses a race against another
process is tried again. Readers see the newest commit (`read_consistency_interval` is zero); a fault of the engine becomes one
sentence. In reviewer mode a table is written only where its spec says `reviewers_write`; a table that is not there reads as empty.
In an object store a commit is a conditional write, and what was read is kept on this machine as long as its version is the newest.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from pamer_lab.config import local_folder, object_store
from pamer_lab.errors import LabError, StorageError
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.storage import faults
from pamer_lab.storage.read_cache import ReadCache
from pamer_lab.storage.specs import TableSpec, migrate

TIDY_EVERY = 64
"""Versions of a table between two compactions; each commit adds a small file, and reading slows down with their number."""
TIDY_ATTEMPTS = 4
"""How often a compaction is tried that others' writes come before."""
INDEX_FROM = 10_000
"""Rows from which an index is worth its upkeep."""
ATTEMPTS = 20
"""How often a write that lost a race against another process is tried again."""
OPEN_ATTEMPTS = 8
"""How often a table is looked for that another process is just creating: its folder exists before its first version."""


class Database:
    """One LanceDB database; opened once and shared by everything that runs in a process."""

    def __init__(self, uri: str | Path) -> None:
        self.uri = str(uri)
        self._tables = Tables(self.uri)
        self.folder = self._tables.folder
        self.remote = bool(object_store(self.uri))
        """In an object store, where other machines may write too."""
        self._cache = ReadCache(self.folder / "reads", self.uri) if self.remote else None

    def table(self, spec: TableSpec) -> Any:
        """The open LanceDB table, created or migrated if need be."""
        return self._tables.get(spec)

    def exists(self, spec: TableSpec) -> bool:
        return self._tables.exists(spec)

    def append(self, spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table) -> int:
        """Add rows in one commit; returns the table's new version."""
        return self._write(spec, lambda table: table.add(spec.arrow(rows)))

    def upsert(self, spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table, *, replace: bool = True) -> int:
        """Add rows by key in one commit; a row with a known key replaces the old one, or is left out."""

        def write(table: Any) -> None:
            merge = table.merge_insert(list(spec.key)).when_not_matched_insert_all()
            (merge.when_matched_update_all() if replace else merge).execute(spec.arrow(rows))

        return self._write(spec, write)

    def insert(self, spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table) -> tuple[int, int]:
        """Add the rows whose key is new, in one commit; returns how many were added and the version.

        Of several processes that insert one key at the same time exactly one learns that it added a row.
        """
        added = 0

        def write(table: Any) -> None:
            nonlocal added
            result = table.merge_insert(list(spec.key)).when_not_matched_insert_all().execute(spec.arrow(rows))
            added = int(result.num_inserted_rows)

        version = self._write(spec, write)
        return added, version

    def replace_if(self, spec: TableSpec, row: dict[str, Any], condition: str) -> bool:
        """Add a row, or replace the one of its key where `condition` (about `target`, the old row) holds; says whether it did.

        Of several processes that try at the same time, each sees what the one before it wrote.
        """
        changed = 0

        def write(table: Any) -> None:
            nonlocal changed
            merge = table.merge_insert(list(spec.key)).when_matched_update_all(where=condition).when_not_matched_insert_all()
            result = merge.execute(spec.arrow([row]))
            changed = int(result.num_inserted_rows) + int(result.num_updated_rows)

        self._write(spec, write)
        return changed == 1

    def tidy(self, spec: TableSpec) -> bool:
        """Join the small files of many commits where enough have gathered, and index a large table; True if files were joined now.

        Only a matter of speed: a compaction that loses a race or fails leaves the table as it was.
        """
        try:
            self._tables.refuse(spec)
            table = self.table(spec)
            if spec.indexed and int(table.count_rows()) >= INDEX_FROM and not table.list_indices():
                self.index(spec, spec.indexed)
            if int(table.stats()["fragment_stats"]["num_fragments"]) < TIDY_EVERY:
                return False
            for attempt in range(TIDY_ATTEMPTS):
                try:
                    table.optimize()
                    return True
                except Exception as error:
                    if not faults.lost_race(error) or attempt == TIDY_ATTEMPTS - 1:
                        raise
            return False
        except Exception:
            return False

    def delete(self, spec: TableSpec, where: str) -> int:
        return self._write(spec, lambda table: table.delete(where))

    def rows(
        self, spec: TableSpec, *, where: str = "", columns: Sequence[str] | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Rows as dictionaries."""
        found: list[dict[str, Any]] = self.arrow(spec, where=where, columns=columns, limit=limit).to_pylist()
        return found

    def arrow(self, spec: TableSpec, *, where: str = "", columns: Sequence[str] | None = None, limit: int | None = None) -> pa.Table:
        """Rows as an Arrow table."""
        if self._tables.unwritten(spec):
            empty = spec.schema.empty_table()
            return empty.select(list(columns)) if columns is not None else empty
        with self._tables.reading(spec) as table:
            if self._cache is None:
                return _query(table, where, columns, limit)
            key = (spec.name, int(table.version), where, *(columns or ("*",)), str(limit))
            return self._cache.get(key, lambda: _query(table, where, columns, limit))

    def page(self, spec: TableSpec, columns: Sequence[str], start: int, count: int, where: str = "") -> list[dict[str, Any]]:
        """Rows by their place in the table, or among those that fit a filter."""
        with self._tables.reading(spec) as table:
            query = table.search().select(list(columns)).offset(start).limit(count)
            query = query.where(where) if where else query
            found: list[dict[str, Any]] = query.to_arrow().to_pylist()
            return found

    def index(self, spec: TableSpec, columns: Sequence[str]) -> None:
        """Make scalar indexes, so that a filter on these columns reads no other rows; existing ones take in new rows."""

        def write(table: Any) -> None:
            from lancedb.index import BTree

            known = {name for index in table.list_indices() for name in index.columns}
            for column in columns:
                if column not in known:
                    table.create_index(column, config=BTree())
            table.optimize()

        self._write(spec, write)

    def count(self, spec: TableSpec, where: str = "") -> int:
        if self._tables.unwritten(spec):
            return 0
        with self._tables.reading(spec) as table:
            return int(table.count_rows(where or None))

    def version(self, spec: TableSpec) -> int:
        """The table's newest version number."""
        if self._tables.unwritten(spec):
            return 0
        with self._tables.reading(spec) as table:
            return int(table.version)

    def recover(self, spec: TableSpec) -> str:
        """Bring a table that cannot be read back to its newest readable version, or set it aside; says what was done."""
        self._tables.refuse(spec)
        self._tables.forget(spec.name)
        return faults.recover(self.uri, spec)

    def _write(self, spec: TableSpec, write: Callable[[Any], None]) -> int:
        self._tables.refuse(spec)
        for attempt in range(ATTEMPTS):
            table = self.table(spec)
            try:
                write(table)
                return int(table.version)
            except Exception as error:
                if not faults.lost_race(error) or attempt == ATTEMPTS - 1:
                    raise self._tables.fault(spec, "written", error) from error
                time.sleep(0.01 * (attempt + 1))
        raise AssertionError("unreachable")


def _query(table: Any, where: str, columns: Sequence[str] | None, limit: int | None) -> pa.Table:
    query = table.search()
    if where:
        query = query.where(where)
    if columns is not None:
        query = query.select(list(columns))
    return query.limit(limit).to_arrow() if limit is not None else query.to_arrow()


class Tables:
    """The open tables of one database, shared by the threads of a process: each is opened, created or migrated when first used."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.folder = local_folder(uri.rpartition("/")[0]) if object_store(uri) else Path(uri).parent
        """The workspace, where the database is in one; of an object store, its local folder."""
        self._open: dict[str, Any] = {}
        self._lock = threading.RLock()

    def get(self, spec: TableSpec) -> Any:
        """The open LanceDB table, created or migrated if need be."""
        with self._lock:
            if spec.name not in self._open:
                self._open[spec.name] = self._opened(spec)
            return self._open[spec.name]

    def forget(self, name: str) -> None:
        """Drop a handle, so that the next use opens the table again."""
        with self._lock:
            self._open.pop(name, None)

    def exists(self, spec: TableSpec) -> bool:
        """Is the table there; one that this process has open is."""
        return spec.name in self._open or spec.name in self._names()

    def unwritten(self, spec: TableSpec) -> bool:
        """A table that is not there, and that reading does not make; it reads as empty."""
        return not self.exists(spec)

    def refuse(self, spec: TableSpec) -> None:
        """Stop what would write a table that reviewer mode keeps."""
        if not spec.reviewers_write:
            refuse_in_reviewer_mode(f"Writing the table {spec.name!r}", self.folder)

    def fault(self, spec: TableSpec, action: str, error: Exception) -> StorageError:
        """The sentence for a fault of the engine; handles that it may have made stale are forgotten."""
        with self._lock:
            self._open.clear()
        return StorageError(f"table {spec.name!r} at {self.uri} cannot be {action} ({faults.short(error)}){faults.advice(error)}")

    @contextmanager
    def reading(self, spec: TableSpec) -> Iterator[Any]:
        """The table, for something that reads it; faults become sentences."""
        try:
            yield self.get(spec)
        except LabError:
            raise
        except Exception as error:
            raise self.fault(spec, "read", error) from error

    @cached_property
    def _connection(self) -> Any:
        os.environ.setdefault("LANCEDB_LOG", "error")  # it warns of commits that two writers try at once, which are tried again
        import lancedb  # here: it takes seconds to import, and a workspace without tables needs none of it

        try:
            return lancedb.connect(self.uri, read_consistency_interval=timedelta(0), storage_options=_options(self.uri))
        except Exception as error:
            raise StorageError(f"the database at {self.uri} cannot be opened ({faults.short(error)}){faults.advice(error)}") from error

    def _names(self) -> list[str]:
        if "://" not in self.uri and not Path(self.uri).exists():
            return []  # Connecting would make the folder.
        try:
            return list(self._connection.list_tables().tables)
        except LabError:
            raise
        except Exception as error:
            raise StorageError(f"the database at {self.uri} cannot be listed ({faults.short(error)}){faults.advice(error)}") from error

    def _opened(self, spec: TableSpec) -> Any:
        for attempt in range(OPEN_ATTEMPTS):
            try:
                if spec.name not in self._names() or (attempt and self._never_begun(spec)):
                    self.refuse(spec)
                    return self._connection.create_table(spec.name, schema=spec.numbered_schema, exist_ok=True)
                table = self._connection.open_table(spec.name)
                migrate(spec, table, lambda: self.refuse(spec))
                return table
            except LabError:
                raise
            except Exception as error:
                if not faults.half_made(error) or attempt == OPEN_ATTEMPTS - 1:
                    raise self.fault(spec, "opened", error) from error
                time.sleep(0.02 * (attempt + 1))
        raise AssertionError("unreachable")

    def _never_begun(self, spec: TableSpec) -> bool:
        """A folder without content: what a full disk leaves of a table that could not be created."""
        folder = Path(self.uri) / f"{spec.name}.lance"
        files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else [folder]
        return not any(path.name[:1] != "." for path in files)


def _options(uri: str) -> dict[str, str] | None:
    """LanceDB takes credentials, region and endpoint from the environment itself; an endpoint without TLS has to be allowed."""
    endpoint = next((os.environ[name] for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT") if os.environ.get(name)), "")
    return {"allow_http": "true"} if uri.startswith("s3://") and endpoint.startswith("http://") else None
