"""LanceDB tables with keys, safe filters and numbered schemas.

Every write is one LanceDB commit: it is there as a whole or not at all. A table's schema carries a number; opening a
table with an older number runs the spec's migrations one by one, and a newer number is refused, so that an old program
never damages a new workspace. The number stands in the metadata of the key's first column and is raised after its
migration; a migration that was cut off between the two runs again, so each one first looks whether its change is there.
Values enter filters only through `equals` and `is_in`, which escape them. Readers always see the newest commit
(`read_consistency_interval` is zero).

Key columns are marked as LanceDB's primary key. LanceDB does not enforce it on appends, but it makes two `merge_insert`
commits of one key conflict, so that of several processes that `insert` the same new key exactly one adds its row. Without
the mark all of them would (`tests/storage/test_races.py` shows both).

In reviewer mode a table is written only where its spec says `reviewers_write`; a table that is not there reads as empty.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa

from pamer_lab.access import refuse_in_reviewer_mode, reviewer_mode
from pamer_lab.errors import LabError, StorageError
from pamer_lab.storage import faults

SCHEMA_NUMBER = "pamer_lab.schema"
PRIMARY_KEY = b"lance-schema:unenforced-primary-key"
TIDY_EVERY = 64
"""Versions of a table between two compactions; each commit adds a small file, and reading slows down with their number."""
ATTEMPTS = 20
"""How often a write that lost a race against another process is tried again."""
OPEN_ATTEMPTS = 8
"""How often a table is looked for that another process is just creating: its folder is there before its first version."""

Migration = Callable[[Any], None]
"""Changes a LanceDB table in place from one schema number to the next; does nothing where the change is already there."""


@dataclass(frozen=True)
class TableSpec:
    """What a room stores: name, columns, key, and how older forms are brought up to date."""

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    """Columns that together name a row; `Database.upsert` keeps one row per key."""
    migrations: tuple[Migration, ...] = field(default=())
    """Entry `i` turns schema number `i` into `i + 1`; the current number is their count."""
    reviewers_write: bool = False
    """Whether reviewer mode may write this table."""

    @property
    def number(self) -> int:
        return len(self.migrations)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The schema as LanceDB gets it: key columns are never null and carry the primary key mark."""
        columns = [
            column.with_nullable(False).with_metadata({PRIMARY_KEY: b"true"}) if column.name in self.key else column
            for column in self.schema
        ]
        return pa.schema(columns)


def equals(column: str, value: str | int | bool) -> str:
    """A filter `column = value`; text is quoted and its quotes doubled."""
    return f"{_column(column)} = {_literal(value)}"


def is_in(column: str, values: Iterable[str | int]) -> str:
    """A filter `column IN (...)`; no values means no row."""
    listed = ", ".join(_literal(value) for value in values)
    return f"{_column(column)} IN ({listed})" if listed else "false"


def _column(name: str) -> str:
    if not name.isidentifier():
        raise StorageError(f"{name!r} is not a column name")
    return name


def _literal(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


class Database:
    """One LanceDB database; opened once and shared by everything that runs in a process."""

    def __init__(self, uri: str | Path) -> None:
        self.uri = str(uri)
        self.folder = Path(self.uri).parent
        """The workspace, where the database lies in one."""
        self._tables: dict[str, Any] = {}
        self._lock = threading.RLock()

    @cached_property
    def _connection(self) -> Any:
        try:
            return lancedb.connect(self.uri, read_consistency_interval=timedelta(0))
        except Exception as error:
            raise StorageError(f"the database at {self.uri} cannot be opened ({faults.short(error)})") from error

    def table(self, spec: TableSpec) -> Any:
        """The open LanceDB table, created or migrated if need be."""
        with self._lock:
            if spec.name not in self._tables:
                self._tables[spec.name] = self._open(spec)
            return self._tables[spec.name]

    def forget(self, name: str) -> None:
        """Drop the cached handle, so that the next use opens the table anew (after a fault)."""
        with self._lock:
            self._tables.pop(name, None)

    def exists(self, spec: TableSpec) -> bool:
        """Is the table there; one that this process has open is."""
        return spec.name in self._tables or spec.name in self._names()

    def append(self, spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table) -> int:
        """Add rows in one commit; returns the table's new version."""
        return self._write(spec, lambda table: table.add(_arrow(spec, rows)))

    def upsert(self, spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table, *, replace: bool = True) -> int:
        """Add rows by key in one commit; a row with a known key replaces the old one, or is left out."""

        def write(table: Any) -> None:
            merge = table.merge_insert(list(spec.key)).when_not_matched_insert_all()
            (merge.when_matched_update_all() if replace else merge).execute(_arrow(spec, rows))

        return self._write(spec, write)

    def insert(self, spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table) -> tuple[int, int]:
        """Add the rows whose key is new, in one commit; returns how many were added and the version.

        Of several processes that insert one key at the same time exactly one is told that it added a row.
        """
        added = 0

        def write(table: Any) -> None:
            nonlocal added
            result = table.merge_insert(list(spec.key)).when_not_matched_insert_all().execute(_arrow(spec, rows))
            added = int(result.num_inserted_rows)

        version = self._write(spec, write)
        return added, version

    def tidy(self, spec: TableSpec) -> bool:
        """Join the small files of many commits where enough have gathered; True if it was done now.

        Only a matter of speed: a compaction that loses a race or fails leaves the table as it was.
        """
        try:
            self._refuse(spec)
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
        if self._unwritten(spec):
            empty = spec.schema.empty_table()
            return empty.select(list(columns)) if columns is not None else empty
        try:
            query = self.table(spec).search()
            if where:
                query = query.where(where)
            if columns is not None:
                query = query.select(list(columns))
            return query.limit(limit).to_arrow() if limit is not None else query.to_arrow()
        except LabError:
            raise
        except Exception as error:
            raise self._fault(spec, "read", error) from error

    def count(self, spec: TableSpec, where: str = "") -> int:
        if self._unwritten(spec):
            return 0
        try:
            return int(self.table(spec).count_rows(where or None))
        except LabError:
            raise
        except Exception as error:
            raise self._fault(spec, "read", error) from error

    def version(self, spec: TableSpec) -> int:
        """The table's newest version number."""
        if self._unwritten(spec):
            return 0
        try:
            return int(self.table(spec).version)
        except LabError:
            raise
        except Exception as error:
            raise self._fault(spec, "read", error) from error

    def recover(self, spec: TableSpec) -> str:
        """Bring a table that cannot be read back to its newest readable version, or set it aside; says what was done.

        Only for a database in a local folder: an object store's own versioning has to help otherwise.
        """
        self._refuse(spec)
        self.forget(spec.name)
        folder = Path(self.uri) / f"{spec.name}.lance"
        if not folder.is_dir():
            raise StorageError(f"table {spec.name!r} at {self.uri} cannot be recovered here; restore it from a copy")
        try:
            for manifest in sorted((folder / "_versions").glob("*.manifest")):
                if self._reads(spec):
                    return f"table {spec.name!r} went back to its newest readable version"
                manifest.rename(manifest.with_suffix(".broken"))
            aside = next(place for number in range(1000) if not (place := folder.with_name(f"{folder.stem}.broken-{number}")).exists())
            folder.rename(aside)
        except OSError as error:
            raise StorageError(f"table {spec.name!r} at {self.uri} cannot be recovered ({error})") from error
        return f"table {spec.name!r} could not be read in any version and was set aside as {aside.name}"

    def _reads(self, spec: TableSpec) -> bool:
        """Can the newest version be read as a whole, by a connection that has nothing in its cache?"""
        try:
            lancedb.connect(self.uri).open_table(spec.name).search().to_arrow()
            return True
        except Exception:
            return False

    def _names(self) -> list[str]:
        if "://" not in self.uri and not Path(self.uri).exists():
            return []  # Connecting would make the folder.
        try:
            return list(self._connection.list_tables().tables)
        except Exception as error:
            raise StorageError(f"the database at {self.uri} cannot be listed ({faults.short(error)})") from error

    def _open(self, spec: TableSpec) -> Any:
        for attempt in range(OPEN_ATTEMPTS):
            try:
                if spec.name not in self._names() or (attempt and self._never_begun(spec)):
                    self._refuse(spec)
                    return self._connection.create_table(spec.name, schema=_numbered(spec), exist_ok=True)
                table = self._connection.open_table(spec.name)
                self._migrate(spec, table)
                return table
            except LabError:
                raise
            except Exception as error:
                if not _half_made(error) or attempt == OPEN_ATTEMPTS - 1:
                    raise self._fault(spec, "opened", error) from error
                time.sleep(0.02 * (attempt + 1))
        raise AssertionError("unreachable")

    def _never_begun(self, spec: TableSpec) -> bool:
        """A folder without content: what a full disk leaves of a table that could not be created."""
        folder = Path(self.uri) / f"{spec.name}.lance"
        files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else [folder]
        return not any(path.name[:1] != "." for path in files)

    def _fault(self, spec: TableSpec, action: str, error: Exception) -> StorageError:
        """The sentence for a fault of the store; handles that it may have made stale are forgotten."""
        advice = faults.advice(error)
        with self._lock:
            self._tables.clear()
        return StorageError(f"table {spec.name!r} at {self.uri} cannot be {action} ({faults.short(error)}){advice}")

    def _migrate(self, spec: TableSpec, table: Any) -> None:
        metadata = table.schema.field(spec.key[0]).metadata or {}
        number = int(metadata.get(SCHEMA_NUMBER.encode(), b"0"))
        if number > spec.number:
            raise StorageError(
                f"table {spec.name!r} has schema {number}, and this program knows {spec.number}; use the newer program for this workspace"
            )
        for step in range(number, spec.number):
            self._refuse(spec)
            spec.migrations[step](table)
            table.update_field_metadata({"path": spec.key[0], "metadata": {SCHEMA_NUMBER: str(step + 1)}})

    def _refuse(self, spec: TableSpec) -> None:
        if not spec.reviewers_write:
            refuse_in_reviewer_mode(f"Writing the table {spec.name!r}", self.folder)

    def _unwritten(self, spec: TableSpec) -> bool:
        """A table that is not there and that reviewer mode forbids to make."""
        return not self.exists(spec) and reviewer_mode(self.folder) and not spec.reviewers_write

    def _write(self, spec: TableSpec, write: Callable[[Any], None]) -> int:
        self._refuse(spec)
        for attempt in range(ATTEMPTS):
            table = self.table(spec)
            try:
                write(table)
                return int(table.version)
            except Exception as error:
                if not _lost_race(error) or attempt == ATTEMPTS - 1:
                    raise self._fault(spec, "written", error) from error
                time.sleep(0.01 * (attempt + 1))
        raise AssertionError("unreachable")


def _numbered(spec: TableSpec) -> pa.Schema:
    """The schema with its number on the key's first column."""
    schema = spec.stored_schema
    first = schema.get_field_index(spec.key[0])
    column = schema.field(first)
    return schema.set(first, column.with_metadata({**(column.metadata or {}), SCHEMA_NUMBER.encode(): str(spec.number).encode()}))


def _arrow(spec: TableSpec, rows: Sequence[dict[str, Any]] | pa.Table) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows.select(spec.schema.names).cast(spec.stored_schema)
    return pa.Table.from_pylist(list(rows), schema=spec.stored_schema)


def _lost_race(error: Exception) -> bool:
    text = str(error).lower()
    return "conflict" in text or "concurrent" in text


def _half_made(error: Exception) -> bool:
    text = str(error).lower()
    return "was not found" in text or "already exists" in text or _lost_race(error)


def to_json(value: Any) -> str:
    """Compact JSON text for a column that holds structure."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
