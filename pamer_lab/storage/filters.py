"""Filters for LanceDB, which takes them as SQL text; all values are escaped here.

Invariant: no value, whatever it contains, becomes more than a value.
"""

from collections.abc import Iterable

from pamer_lab.errors import StorageError


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
