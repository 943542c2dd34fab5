"""Values -> JSON that is inert inside a page: no text can end its script element or open another."""

import json
import math
import re
from typing import Any

from pamer_lab.report.texts import SURROGATES

_ESCAPES = {mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}
_UNSAFE = re.compile("[<>&\u2028\u2029]")


def json_text(value: Any) -> str:
    """JSON that is inert inside a script element; marks can stand only inside strings, where the escape means the same."""
    text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    return _UNSAFE.sub(lambda match: _ESCAPES[match[0]], SURROGATES.sub("\ufffd", text))


def finite(value: Any) -> Any:
    """The value with every number that JSON has no word for (an undefined metric) as null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
        case _:
            return value
