"""Table specs (columns, key, schema number, migrations) and filters, which LanceDB takes as SQL text.

Opening a table with an older schema number runs the spec's migrations one by one; a newer number is refused, so that an old program
never damages a new workspace. Invariant: in a filter no value, whatever it contains, becomes more than a value.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from pamer_lab.errors import StorageError

SCHEMA_NUMBER = "pamer_lab.schema"
"""Key of the schema number in the metadata of the key's first column; the number is raised after each migration."""
MADE = "pamer_lab.made"
"""Next to the number: a random name of this table, which tells it from an earlier one of the same name."""
PRIMARY_KEY = b"lance-schema:unenforced-primary-key"
"""Mark of key columns. LanceDB does not enforce it on appends, but two `merge_insert` commits of one key then conflict, so of several
processes that `insert` the same new key exactly one adds its row. Without it all would (`tests/storage/test_races.py` shows both)."""

Migration = Callable[[Any], None]
"""Changes a LanceDB table in place from one schema number to the next. It runs again if it was cut off before the number was raised,
so it must do nothing if its change was already made."""


@dataclass(frozen=True)
class TableSpec:
    """A table: name, columns, key and migrations."""

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    """Columns that together name a row; `Database.upsert` keeps one row per key."""
    migrations: tuple[Migration, ...] = field(default=())
    """Entry `i` turns schema number `i` into `i + 1`; the current number is their count."""
    indexed: tuple[str, ...] = ()
    """Columns that are indexed once the table is large."""
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

    @property
    def numbered_schema(self) -> pa.Schema:
        """The schema of a new table: as stored, with its number and its random name on the key's first column."""
        schema = self.stored_schema
        first = schema.get_field_index(self.key[0])
        column = schema.field(first)
        marks = {SCHEMA_NUMBER: str(self.number), MADE: uuid.uuid4().hex}
        return schema.set(first, column.with_metadata({**(column.metadata or {}), **marks}))

    def arrow(self, rows: Sequence[dict[str, Any]] | pa.Table) -> pa.Table:
        """Rows as LanceDB gets them."""
        if isinstance(rows, pa.Table):
            return rows.select(self.schema.names).cast(self.stored_schema)
        return pa.Table.from_pylist(list(rows), schema=self.stored_schema)


def migrate(spec: TableSpec, table: Any, before_each: Callable[[], None]) -> None:
    """Bring an open LanceDB table to the spec's number; `before_each` may refuse a step by raising."""
    metadata = table.schema.field(spec.key[0]).metadata or {}
    number = int(metadata.get(SCHEMA_NUMBER.encode(), b"0"))
    if number > spec.number:
        raise StorageError(
            f"table {spec.name!r} has schema {number}, but this program supports {spec.number}; use the newer program for this workspace"
        )
    for step in range(number, spec.number):
        before_each()
        spec.migrations[step](table)
        table.update_field_metadata({"path": spec.key[0], "metadata": {SCHEMA_NUMBER: str(step + 1)}})


def made(spec: TableSpec, table: Any) -> str:
    """The name that an open LanceDB table was given when it was created; empty for one of an older program."""
    metadata = table.schema.field(spec.key[0]).metadata or {}
    return str(metadata.get(MADE.encode(), b"").decode())


def equals(column: str, value: str | int | bool) -> str:
    """A filter `column = value`; text is quoted and its quotes doubled."""
    return f"{_column(column)} = {_literal(value)}"


def is_in(column: str, values: Iterable[str | int]) -> str:
    """A filter `column IN (...)`; no values means no row."""
    listed = ", ".join(_literal(value) for value in values)
    return f"{_column(column)} IN ({listed})" if listed else "false"


def starts(column: str, beginning: str) -> str:
    """A filter on how a text begins."""
    return f"starts_with({_column(column)}, {_literal(beginning)})"


def contains(column: str, part: str) -> str:
    """A filter on a part of a text, ignoring case."""
    return f"strpos(lower({_column(column)}), {_literal(part.lower())}) > 0"


def in_parts(values: Iterable[str], size: int = 1000) -> Iterator[list[str]]:
    """Values for `is_in`, not too many in one filter."""
    rest = list(values)
    for start in range(0, len(rest), size):
        yield rest[start : start + size]


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
