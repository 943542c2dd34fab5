"""Fields of untrusted JSON, each as the type a reader needs; a field of another type counts as missing.

Several keys are alternatives, tried in order. Invariant: nothing here raises, whatever it is given.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson

T = TypeVar("T")


def text(value: Any, *keys: str) -> str:
    """The first of these fields that is a non-empty text or a number, as text."""
    for key in keys if isinstance(value, dict) else ():
        if found := as_text(value.get(key)):
            return found
    return ""


def obj(value: Any, *keys: str) -> dict[str, Any]:
    """The first of these fields that is an object; empty where none is."""
    for key in keys if isinstance(value, dict) else ():
        if isinstance(found := value.get(key), dict):
            return found
    return {}


def items(value: Any, *keys: str) -> list[Any]:
    """The first of these fields that is a list; empty where none is."""
    for key in keys if isinstance(value, dict) else ():
        if isinstance(found := value.get(key), list):
            return found
    return []


def objects(value: Any, *keys: str) -> list[dict[str, Any]]:
    """The objects in the first of these fields that is a list."""
    return [item for item in items(value, *keys) if isinstance(item, dict)]


def first(value: Any, *keys: str) -> dict[str, Any]:
    """The first item of such a list if it is an object, else empty; most formats are recognised by it."""
    found = items(value, *keys)
    return found[0] if found and isinstance(found[0], dict) else {}


def count(value: Any, *keys: str) -> int | None:
    """The first of these fields that is a finite number, as an integer."""
    for key in keys if isinstance(value, dict) else ():
        if (found := as_count(value.get(key))) is not None:
            return found
    return None


def amount(value: Any, *keys: str) -> float | None:
    """The first of these fields that is a number or a truth value, such as a reward or a price."""
    for key in keys if isinstance(value, dict) else ():
        if (found := as_amount(value.get(key))) is not None:
            return found
    return None


def some(value: Any, *keys: str) -> Any:
    """The first of these fields that holds anything, of whatever type."""
    for key in keys if isinstance(value, dict) else ():
        if found := value.get(key):
            return found
    return None


def facts(value: Any, *keys: str) -> dict[str, Any]:
    """These fields as they are, for `meta`; missing ones are None, which `meta` leaves out."""
    return {key: value.get(key) for key in keys} if isinstance(value, dict) else {}


def placed(found: Iterable[T], place: str) -> Iterator[tuple[str, T]]:
    """The items of a list with their places: `messages[0]`, `messages[1]` and so on."""
    return ((f"{place}[{number}]", item) for number, item in enumerate(found))


def as_text(value: Any) -> str:
    """A short fact as text: text stays, a number is written, anything else is empty."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) and _is_bearable(value) else ""


def as_list(value: Any) -> list[Any]:
    """A list as it is; a single value as a list of one."""
    return value if isinstance(value, list) else [value]


def as_count(value: Any) -> int | None:
    """A recorded count as an integer; None for anything else, NaN and infinity included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e15 else None


def as_amount(value: Any) -> float | None:
    """A recorded number as a float, NaN included; None for anything else."""
    return float(value) if isinstance(value, int | float) and _is_bearable(value) else None


def _is_bearable(value: int | float) -> bool:
    """False for integers, valid in JSON, that no float can hold and that Python refuses to write."""
    return isinstance(value, float) or abs(value) < 10**300


def as_time(value: Any) -> float | None:
    """A time stamp in seconds since 1970: ISO 8601 text (UTC where it names no zone), seconds or milliseconds; else None."""
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    seconds = as_amount(value) if not isinstance(value, bool) else None
    if seconds is None or not 0 < seconds < LATEST * 1000:
        return None
    return seconds if seconds < LATEST else seconds / 1000


LATEST = 1e11
"""Seconds; a larger time stamp is taken as milliseconds."""


def parsed(value: Any) -> Any:
    """JSON text as its value, None if it is not JSON; anything but text stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
