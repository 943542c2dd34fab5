"""One document -> its episodes, each read by itself, so that one bad episode never hides the others.

Knows lists, lines and places; knows no format.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft

SHAPE_ERRORS = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What a reader raises on a shape it did not expect; the file is at fault, and the user gets a sentence."""


def episodes(document: Document) -> Iterator[tuple[str, Any]]:
    """(place, value) of each episode: the items of a list, or one value per line."""
    for record in document.records:
        if isinstance(record.value, list):
            for number, value in enumerate(record.value):
                yield f"{record.where} [{number}]".strip(), value
        else:
            yield record.where, record.value


def first_episode(document: Document) -> Any:
    """The value that detection looks at; None for a zip, a folder or an empty list."""
    if document.kind not in ("json", "jsonl"):
        return None
    root = document.root
    return (root[0] if root else None) if isinstance(root, list) else root


def first_episodes(document: Document, count: int = 20) -> list[Any]:
    """The values that detection looks at where a file's first episodes may be failed runs without messages."""
    return [value for _, value in islice(episodes(document), count)] if document.kind in ("json", "jsonl") else []


def read_each(document: Document, name: str, read_one: Callable[[Any, str], Draft]) -> Iterator[Draft]:
    """A draft per episode; one that cannot be read becomes a rejection of its own."""
    for where, value in episodes(document):
        yield attempt(name, where, lambda value=value, where=where: read_one(value, where))  # type: ignore[misc]


def attempt(name: str, where: str, read: Callable[[], Draft]) -> Draft:
    """The draft that `read` makes, or a broken one that says why not."""
    try:
        return read()
    except FormatError as error:
        return Draft.broken(name, where, error)
    except SHAPE_ERRORS as error:
        return Draft.broken(name, where, shape_fault(error))


def shape_fault(error: Exception) -> FormatError:
    """An unexpected shape, in words."""
    return FormatError(f"has an unexpected shape ({type(error).__name__}: {str(error)[:200]})")
