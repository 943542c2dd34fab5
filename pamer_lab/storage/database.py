"""The rows of a LanceDB database: read and written by key, each write one commit that is there as a whole or not at all.

What a table looks like is its `TableSpec`; filters are made by `equals` and `is_in`. A write that loses a race against another
process is tried again. In reviewer mode a table is written only where its spec says `reviewers_write`; a table that is not there reads as
empty.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pamer_lab.storage import faults, recovery
from pamer_lab.storage.specs import TableSpec
from pamer_lab.storage.tables import Tables

TIDY_EVERY = 64
"""Versions of a table between two compactions; each commit adds a small file, and reading slows down with their number."""
ATTEMPTS = 20
"""How often a write that lost a race against another process is tried again."""


class Database:
    """One LanceDB database; opened once and shared by everything that runs in a process."""

    def __init__(self, uri: str | Path) -> None:
        self.uri = str(uri)
        self.folder = Path(self.uri).parent
        """The workspace, where the database lies in one."""
        self._tables = Tables(self.uri)

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

        Of several processes that insert one key at the same time exactly one is told that it added a row.
        """
        added = 0

        def write(table: Any) -> None:
            nonlocal added
            result = table.merge_insert(list(spec.key)).when_not_matched_insert_all().execute(spec.arrow(rows))
            added = int(result.num_inserted_rows)

        version = self._write(spec, write)
        return added, version

    def tidy(self, spec: TableSpec) -> bool:
        """Join the small files of many commits where enough have gathered; True if it was done now.

        Only a matter of speed: a compaction that loses a race or fails leaves the table as it was.
        """
        try:
            self._tables.refuse(spec)
            table = self.table(spec)
            if int(table.stats()["fragment_stats"]["num_fragments"]) < TIDY_EVERY:
                return False
            table.optimize()
            return True
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
            query = table.search()
            if where:
                query = query.where(where)
            if columns is not None:
                query = query.select(list(columns))
            return query.limit(limit).to_arrow() if limit is not None else query.to_arrow()

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
        return recovery.recover(self.uri, spec)

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
