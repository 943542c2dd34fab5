"""The attributes, ids and times of spans in the shapes of OTLP, Jaeger and flat tables -> plain values.

Knows no container and no dialect. Invariant: nothing here raises.
"""

from datetime import datetime
from typing import Any

from pamer_lab.counts import whole_number
from pamer_lab.trajectory.shared import get


def attributes_of(value: dict[str, Any]) -> dict[str, Any] | None:
    """The attributes under dotted names; None if an object has none and is no span either."""
    for key in ("attributes", "span_attributes", "SpanAttributes", "spanAttributes", "tags"):
        found = value.get(key)
        if isinstance(found, str):
            found = get.parsed(found)
        if isinstance(found, dict):
            return flat(found)
        if isinstance(found, list) and (found or key == "tags") and all(isinstance(item, dict) and "key" in item for item in found):
            return {get.as_text(item["key"]): plain_value(item.get("value")) for item in found}
    if table := {key[11:]: found for key, found in value.items() if key.startswith("attributes.") and found is not None}:
        return flat(table)
    if {"spanId", "traceId"} <= value.keys() or {"span_id", "trace_id"} <= value.keys():
        return {}
    return None


def flat(value: dict[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested attributes under dotted names; lists stay as they are."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict) and item and depth < 8 and not TYPED & item.keys():
            found |= flat(item, f"{prefix}{key}.", depth + 1)
        else:
            found[f"{prefix}{key}"] = plain_value(item)
    return found


TYPED = {"stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue"}
TYPED |= {"string_value", "int_value", "double_value", "bool_value", "array_value", "kvlist_value"}


def plain_value(value: Any, depth: int = 0) -> Any:
    """OTLP's typed value as a plain one."""
    if not isinstance(value, dict) or len(value) != 1 or depth > 20:
        return value
    (key, inner), *_ = value.items()
    if key not in TYPED:
        return value
    if key in ("arrayValue", "array_value"):
        return [plain_value(item, depth + 1) for item in get.items(inner, "values")]
    if key in ("kvlistValue", "kvlist_value"):
        return {get.text(item, "key"): plain_value(item.get("value"), depth + 1) for item in get.objects(inner, "values")}
    number = whole_number(inner) if key in ("intValue", "int_value") and isinstance(inner, str) else None
    return inner if number is None else number


def first_id(value: Any, *keys: str) -> str:
    """The first of these fields that is an id, as text."""
    return next((found for key in keys if isinstance(value, dict) and (found := get.as_text(value.get(key)))), "")


def nanoseconds(value: Any) -> int:
    """A time as nanoseconds since 1970, whatever its unit; 0 where it is no time."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return int(value[0]) * 10**9 + int(value[1])
    if isinstance(value, str):
        text = value.strip()
        if not (text.isascii() and text.replace(".", "", 1).isdigit()):
            try:
                return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 10**6) * 1000
            except (ValueError, OverflowError):
                return 0
        value = float(text) if "." in text or len(text) > 30 else int(text)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
        return 0
    for unit, least in ((1, 10**17), (10**3, 10**14), (10**6, 10**11)):
        if value >= least:
            return int(value * unit)
    return int(value * 10**9)
