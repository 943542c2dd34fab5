"""Values as they are stored: arguments as JSON text, facts as plain JSON, parameters of limited depth.

Knows no trace and no format.
"""

from typing import Any

import orjson

from pamer_lab.errors import FormatError

NO_ARGUMENTS = "".join("{}")
"""The arguments of a call whose source gives none at all. Compared by identity, so that an explicit `{}` is not mistaken for it."""
MOST_DEPTH = 100
"""Maximum levels of a tool's parameters; beyond 254 levels a request cannot be serialised."""


def json_text(value: Any) -> str:
    """Arguments as JSON text: text stays as it is, anything else is written compactly."""
    if isinstance(value, str):
        return value
    try:
        return NO_ARGUMENTS if value is None else orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError as error:
        raise FormatError(f"has arguments that cannot be written as JSON ({error})") from error


def is_deep(value: Any) -> bool:
    """Whether a value has more than `MOST_DEPTH` levels."""
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    """The objects and lists directly inside a value."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in inside if isinstance(child, dict | list)]


def plain(meta: dict[str, Any]) -> dict[str, Any]:
    """`meta` without empty values, as plain JSON values."""
    kept = {key: value for key, value in meta.items() if value not in (None, "", [], {})}
    result: dict[str, Any] = orjson.loads(orjson.dumps(kept, default=str, option=orjson.OPT_NON_STR_KEYS))
    return result
