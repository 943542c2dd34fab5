"""What line-based formats share: the objects of a document, each with its place.

Not a format itself. A log may be one object per line or the same objects in one JSON array; readers need not care.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document

Row = tuple[str, dict[str, Any]]
"""(place in the source, object)."""


def rows(document: Document) -> list[Row]:
    """Every object of the document in file order; values that are not objects are left to `strays`."""
    return [(where, value) for where, value in _values(document) if type(value) is dict]


def strays(document: Document) -> list[str]:
    """Places of the values that are not objects."""
    return [where for where, value in _values(document) if type(value) is not dict]


def head(document: Document, count: int = 50) -> list[dict[str, Any]]:
    """The first objects of the document, enough to tell a format by."""
    found: list[dict[str, Any]] = []
    for _, value in _values(document):
        if type(value) is dict:
            found.append(value)
            if len(found) == count:
                break
    return found


def text_of(value: Any) -> str:
    """A short fact as text: text stays, a number is written, anything else is empty."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def list_of(value: Any) -> list[Any]:
    """A list as it is; anything else holds nothing to go through."""
    return value if isinstance(value, list) else []


def number_of(value: Any) -> int | None:
    """A recorded count as a whole number; None for anything else, NaN and infinity included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e15 else None


def _values(document: Document) -> Iterator[tuple[str, Any]]:
    if document.kind == "json" and type(document.root) is list:
        yield from ((f"[{number}]", value) for number, value in enumerate(document.root))
        return
    for record in document.records:
        yield record.where, record.value
