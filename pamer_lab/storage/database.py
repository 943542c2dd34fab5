"""The rows of a LanceDB database, read and written by key; each write is one atomic commit, retried if another process commits first.

Readers see the newest commit (`read_consistency_interval` is zero), a missing table reads as empty, and an engine fault becomes one
sentence. Reviewer mode writes only tables whose spec says `reviewers_write`. In an object store a commit is a conditional write, and
reads are cached locally for as long as their table version is the newest.
"""

import time
from collections.abc import Callable, Sequence
from math import isqrt
from pathlib import Path
from typing import Any

import pyarrow as pa

from pamer_lab.config import object_store
from pamer_lab.storage import faults
from pamer_lab.storage.open_tables import Tables
from pamer_lab.storage.read_cache import ReadCache
from pamer_lab.storage.specs import TableSpec

TIDY_FROM = 64
"""Small files from which a small table is worth compacting; each commit adds one, and reads slow down with their number."""
TIDY_ATTEMPTS = 4
"""How often a compaction is tried when other writes get in first."""
INDEX_FROM = 10_000
"""Rows from which an index is worth maintaining."""
ATTEMPTS = 20
"""How often a write that lost a race against another process is tried again."""


class Database:
    """One LanceDB database; opened once and shared by everything that runs in a process."""

    def __init__(self, uri: str | Path) -> None:
        self.uri = str(uri)
        self._tables = Tables(self.uri)
        self.folder = self._tables.folder
        self.remote = bool(object_store(self.uri))
        """Whether it is in an object store, where other machines may write too."""
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

        def write(table: Any) -> Any:
            merge = table.merge_insert(list(spec.key)).when_not_matched_insert_all()
            return (merge.when_matched_update_all() if replace else merge).execute(spec.arrow(rows))

        return self._write(spec, write)

    def insert(self, spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table) -> tuple[int, int]:
        """Add the rows whose key is new, in one commit; returns how many were added and the version.

        Of several processes that insert one key at the same time exactly one learns that it added a row.
        """
        added = 0

        def write(table: Any) -> Any:
            nonlocal added
            result = table.merge_insert(list(spec.key)).when_not_matched_insert_all().execute(spec.arrow(rows))
            added = int(result.num_inserted_rows)
            return result

        version = self._write(spec, write)
        return added, version

    def replace_if(self, spec: TableSpec, row: dict[str, Any], condition: str) -> bool:
        """Add a row, or replace the one of its key where `condition` (about `target`, the old row) holds; returns whether it did.

        Of several processes that try at the same time, each sees what the one before it wrote.
        """
        changed = 0

        def write(table: Any) -> Any:
            nonlocal changed
            merge = table.merge_insert(list(spec.key)).when_matched_update_all(where=condition).when_not_matched_insert_all()
            result = merge.execute(spec.arrow([row]))
            changed = int(result.num_inserted_rows) + int(result.num_updated_rows)
            return result

        self._write(spec, write)
        return changed == 1

    def tidy(self, spec: TableSpec) -> bool:
        """Compact the small files of many commits once there are enough, and index a large table; True if files were compacted now.

        This affects speed only: a compaction that loses a race or fails leaves the table as it was. It rewrites every row, so larger
        tables wait for more files.
        """
        try:
            self._tables.refuse(spec)
            table = self.table(spec)
            rows = int(table.count_rows())
            if spec.indexed and rows >= INDEX_FROM and not table.list_indices():
                self.index(spec, spec.indexed)
            if int(table.stats()["fragment_stats"]["num_fragments"]) < max(TIDY_FROM, isqrt(rows)):
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
            key = (spec.name, self._tables.made(spec), int(table.version), where, *(columns or ("*",)), str(limit))
            return self._cache.get(key, lambda: _query(table, where, columns, limit))

    def page(self, spec: TableSpec, columns: Sequence[str], start: int, count: int, where: str = "") -> list[dict[str, Any]]:
        """Rows by their place in the table, or among those that fit a filter."""
        if self._tables.unwritten(spec):
            return []
        with self._tables.reading(spec) as table:
            query = table.search().select(list(columns)).offset(start).limit(count)
            query = query.where(where) if where else query
            found: list[dict[str, Any]] = query.to_arrow().to_pylist()
            return found

    def index(self, spec: TableSpec, columns: Sequence[str]) -> None:
        """Create scalar indexes, so that a filter on these columns reads no other rows; existing ones are extended to new rows."""

        def write(table: Any) -> Any:
            from lancedb.index import BTree

            known = {name for index in table.list_indices() for name in index.columns}
            for column in columns:
                if column not in known:
                    table.create_index(column, config=BTree())
            table.optimize()
            return table

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
        """Bring a table that cannot be read back to its newest readable version, or set it aside; returns what was done."""
        self._tables.refuse(spec)
        self._tables.forget(spec.name)
        return faults.recover(self.uri, spec)

    def _write(self, spec: TableSpec, write: Callable[[Any], Any]) -> int:
        """`write` returns an object with the `version` that it made."""
        self._tables.refuse(spec)
        for attempt in range(ATTEMPTS):
            table = self.table(spec)
            try:
                return int(write(table).version)
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
