"""The bytes of a SQLite file -> the rows of its tables, within the limits, or an error in one sentence.

Several agents keep their sessions in SQLite. The file is opened as a copy in memory, with the pages of its write-ahead log applied if
there is one, so nothing is written; only plain tables are read, and no view, trigger, virtual table or function of the file ever runs.
Knows nothing of traces.
"""

import re
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.trajectory.unpacking import ZSTD_MAGIC, unzstd

SQLITE_MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
WRITE_VERSION = slice(18, 20)
"""Where the header says how the file is written; 2 means that the newest pages may be in a second file."""
PLAIN, WAL = b"\1\1", b"\2\2"
WAL_HEADER = struct.Struct(">4s4xI4x8s8x")
"""Header of a write-ahead log: magic, bytes per page, salt."""
WAL_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
WAL_FRAME = struct.Struct(">II8s8x")
"""Header of each page in the log: page number, pages of the file after a commit (0 inside one), salt."""
MOST_TABLES = 500
STEPS = 1_000
"""SQLite instructions between two checks of the budget."""
MOST_CALLS = 2_000_000
"""Checks of the budget before a file that never ends is refused."""
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
ORDINARY = "SELECT name, sql FROM sqlite_schema"
PLAIN_TABLE = re.compile(r"\A\s*CREATE\s+TABLE\b(?!.*\bAS\s*\()", re.IGNORECASE | re.DOTALL)
"""Excludes virtual tables, whose module runs on first access, and computed columns, whose functions run when they are read."""

Tables = dict[str, list[dict[str, Any]]]


def is_wal(data: bytes) -> bool:
    """Whether these are bytes of SQLite whose newest pages may be in a `-wal` file next to them."""
    return data[: len(SQLITE_MAGIC)] == SQLITE_MAGIC and data[WRITE_VERSION] == WAL


def with_log(data: bytes, log: bytes, most: int) -> bytes:
    """The file with the committed pages of its write-ahead log applied, up to the first frame of an older log (with another salt).

    A log in which a table of the file is missing belongs to another file, so the file is returned unchanged.
    """
    if len(log) < WAL_HEADER.size:
        return data
    magic, size, salt = WAL_HEADER.unpack_from(log)
    if magic not in WAL_MAGIC or not 512 <= size <= 65_536:
        return data
    frames: list[tuple[int, int]] = []
    total = committed = 0
    for start in range(WAL_HEADER.size, len(log) - WAL_FRAME.size - size + 1, WAL_FRAME.size + size):
        number, after, own = WAL_FRAME.unpack_from(log, start)
        if own != salt or not number:
            break
        frames.append((number, start + WAL_FRAME.size))
        if after:
            total, committed = after, len(frames)
    if not committed or total * size > most:
        return data
    image = bytearray(data[: total * size].ljust(total * size, b"\0"))
    for number, start in frames[:committed]:
        if number <= total:
            image[(number - 1) * size : number * size] = log[start : start + size]
    image[WRITE_VERSION] = PLAIN
    merged = bytes(image)
    return merged if _table_names(data) <= _table_names(merged) else data


def _table_names(data: bytes) -> set[str]:
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(data[: WRITE_VERSION.start] + PLAIN + data[WRITE_VERSION.stop :])
            _guard(connection, ReadLimits())
            return set(_names(connection))
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError, InputError, MemoryError):
        return set()


def read_tables(data: bytes, limits: ReadLimits) -> Tables:
    """The rows of every plain table by its name, in the order of the file."""
    if len(data) < HEADER_BYTES:
        raise InputError("is a truncated SQLite file")
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(data[: WRITE_VERSION.start] + PLAIN + data[WRITE_VERSION.stop :])
            _guard(connection, limits)
            budget = _Budget(limits)
            return {name: list(_rows(connection, name, budget)) for name in _names(connection)}
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:  # ValueError: a damaged name that is not UTF-8
        raise InputError(f"is a damaged or encrypted SQLite file ({error})") from error
    except MemoryError as error:
        raise InputError("is too large to be read as SQLite; export the session as JSON instead") from error


def _guard(connection: sqlite3.Connection, limits: ReadLimits) -> None:
    for setting in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {setting}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.max_bytes)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY)
    calls = iter(range(MOST_CALLS))
    connection.set_progress_handler(lambda: next(calls, None) is None, STEPS)


def _names(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute(ORDINARY).fetchmany(MOST_TABLES + 1)
    if len(found) > MOST_TABLES:
        raise InputError(f"contains more than {MOST_TABLES} tables, indices and views")
    plain = [name for name, sql in found if isinstance(name, str) and isinstance(sql, str) and PLAIN_TABLE.match(sql)]
    return [name for name in plain if not name.startswith("sqlite_")]


class _Budget:
    """Limits the total size of the rows, since a damaged file may repeat its pages endlessly."""

    def __init__(self, limits: ReadLimits) -> None:
        self.bytes, self.values, self.limits = limits.max_bytes, limits.max_values, limits

    def take(self, row: tuple[Any, ...]) -> None:
        self.values -= len(row)
        self.bytes -= sum(len(value) for value in row if isinstance(value, str | bytes))
        if self.values < 0 or self.bytes < 0:
            raise InputError("contains more rows than the limit; export the session as JSON, or raise PAMER_LAB_MAX_FILE_MB")


def _rows(connection: sqlite3.Connection, name: str, budget: _Budget) -> Iterator[dict[str, Any]]:
    quoted = name.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608 - the name is quoted, and only plain reads are allowed
    columns = [item[0] for item in cursor.description]
    for row in cursor:
        budget.take(row)
        yield dict(zip(columns, (_plain(value, budget) for value in row), strict=True))


def _plain(value: Any, budget: _Budget) -> Any:
    """A value in JSON types; bytes that are text (compressed with zstd or not) become text, other bytes their length."""
    if not isinstance(value, bytes):
        return value
    try:
        if value[:4] == ZSTD_MAGIC:
            value = unzstd(value, budget.bytes)
            budget.take((value,))
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": len(value)}
