"""Fields of untrusted JSON, each as the type a reader needs; a field of another type counts as missing.

Several keys are alternatives, tried in order. Invariant: nothing here raises, whatever it is given.
"""

from typing import Any

import orjson


def text(value: Any, *keys: str) -> str:
    """The first of these fields that is a non-empty text or a number, as text."""
    for key in keys if isinstance(value, dict) else ():
        if found := as_text(value.get(key)):
            return found
    return ""


def obj(value: Any, *keys: str) -> dict[str, Any]:
    """The first of these fields that is an object; empty where none is."""
    fields = value if isinstance(value, dict) else {}
    return next((fields[key] for key in keys if isinstance(fields.get(key), dict)), {})


def items(value: Any, *keys: str) -> list[Any]:
    """The first of these fields that is a list; empty where none is."""
    fields = value if isinstance(value, dict) else {}
    return next((fields[key] for key in keys if isinstance(fields.get(key), list)), [])


def objects(value: Any, *keys: str) -> list[dict[str, Any]]:
    """The objects in the first of these fields that is a list."""
    return [item for item in items(value, *keys) if isinstance(item, dict)]


def first(value: Any, *keys: str) -> dict[str, Any]:
    """The first item of such a list, where that is an object; what most formats are recognised by."""
    found = items(value, *keys)
    return found[0] if found and isinstance(found[0], dict) else {}


def count(value: Any, *keys: str) -> int | None:
    """The first of these fields that is a finite number, as a whole number."""
    fields = value if isinstance(value, dict) else {}
    return next((number for key in keys if (number := as_count(fields.get(key))) is not None), None)


def amount(value: Any, *keys: str) -> float | None:
    """The first of these fields that is a number or a truth value, such as a reward or a price."""
    fields = value if isinstance(value, dict) else {}
    return next((float(fields[key]) for key in keys if isinstance(fields.get(key), int | float)), None)


def some(value: Any, *keys: str) -> Any:
    """The first of these fields that holds anything, of whatever type."""
    fields = value if isinstance(value, dict) else {}
    return next((fields[key] for key in keys if fields.get(key)), None)


def facts(value: Any, *keys: str) -> dict[str, Any]:
    """These fields as they are, for `meta`; missing ones are None, which `meta` leaves out."""
    return {key: value.get(key) for key in keys} if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """A short fact as text: text stays, a number is written, anything else is empty."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def as_list(value: Any) -> list[Any]:
    """A list as it is; a single value as a list of one."""
    return value if isinstance(value, list) else [value]


def as_count(value: Any) -> int | None:
    """A recorded count as a whole number; None for anything else, NaN and infinity included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e15 else None


def parsed(value: Any) -> Any:
    """JSON text as its value, None where it is not JSON; anything but text stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
