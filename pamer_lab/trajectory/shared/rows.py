"""A document -> its values with their places, and each trace read by itself, so that a bad one never hides the others.

A log may be one object per line or the same objects in one JSON array; readers need not care.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ParamSpec

from pamer_lab.errors import FormatError, NotThisFormat
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft

P = ParamSpec("P")
Row = tuple[str, dict[str, Any]]
"""(place in the source, object)."""

SHAPE_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What a reader raises on a shape it did not expect; the file is at fault, and the user gets a sentence."""


def one_value(document: Document) -> Any:
    """The value of a file that holds one; None for lines, a zip or a folder. For detection, like the next five functions."""
    return document.root if document.kind == "json" else None


def first_value(document: Document) -> Any:
    """The value of the file or of its first line; None for a zip or a folder."""
    return document.root if document.kind in ("json", "jsonl") else None


def first_episode(document: Document) -> Any:
    """The first value, or the first item of a list of them."""
    root = first_value(document)
    return (root[0] if root else None) if isinstance(root, list) else root


def first_episodes(document: Document, count: int = 20) -> list[Any]:
    """The first `count` episodes, for files whose first ones may be failed runs without messages."""
    return [value for _, value in islice(episodes(document), count)] if document.kind in ("json", "jsonl") else []


def head(document: Document, count: int = 50) -> list[dict[str, Any]]:
    """The first objects of a file, enough to recognise a format by; none of a zip or a folder."""
    if document.kind not in ("json", "jsonl"):
        return []
    return list(islice((value for _, value in _values(document) if type(value) is dict), count))


def first_row(document: Document) -> dict[str, Any]:
    """The first object of a file; empty where there is none."""
    return next(iter(head(document, 1)), {})


def rows(document: Document) -> list[Row]:
    """Every object of the document in file order; values that are not objects are left to `warn_strays`."""
    return [(where, value) for where, value in _values(document) if type(value) is dict]


def trace_rows(document: Document) -> list[Row]:
    """The objects of a document in which each is a trace; a single one needs no place."""
    found = rows(document)
    return found if len(found) > 1 else [("", row) for _, row in found]


def warn_strays(draft: Draft, document: Document) -> None:
    """Name the values of a log that are not objects."""
    for where, value in _values(document):
        if type(value) is not dict:
            draft.warn(where, "is not an object; left out")


def _values(document: Document) -> Iterator[tuple[str, Any]]:
    if document.kind == "json" and type(document.root) is list:
        yield from ((f"[{number}]", value) for number, value in enumerate(document.root))
        return
    for record in document.records:
        yield record.where, record.value


def episodes(document: Document) -> Iterator[tuple[str, Any]]:
    """(place, value) of each episode: the items of a list, or one value per line."""
    for record in document.records:
        if isinstance(record.value, list):
            for number, value in enumerate(record.value):
                yield f"{record.where} [{number}]".strip(), value
        else:
            yield record.where, record.value


def read_each(document: Document, name: str, read_one: Callable[[Any, str], Draft]) -> Iterator[Draft]:
    """A draft per episode; one that cannot be read becomes a separate rejection."""
    for where, value in episodes(document):
        yield attempt(name, where, read_one, value, where)


def attempt(name: str, where: str, read: Callable[P, Draft], *args: P.args, **kwargs: P.kwargs) -> Draft:
    """The draft that `read` makes of the arguments, or a broken one that says why not."""
    try:
        return read(*args, **kwargs)
    except FormatError as error:
        return Draft.broken(name, where, error)
    except SHAPE_ERRORS as error:
        return Draft.broken(name, where, shape_fault(error))


def shape_fault(error: Exception) -> FormatError:
    """Describe an unexpected shape."""
    return NotThisFormat(f"has an unexpected shape ({type(error).__name__}: {str(error)[:200]})")
