"""The texts of a report, each stored once under its hash and shortened where too long; and JSON that is inert inside a page.

A text's name is the SHA-256 of the words in the file (24 hex digits), so that the page can verify it; a shortened text says in its middle
how much is missing; without text, references are null. No text can end its script element or open another.
"""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from pamer_lab.runs.turn_rows import text_id

SURROGATES = re.compile("[\ud800-\udfff]")
"""Lone surrogates, which UTF-8 cannot encode; they become U+FFFD."""
LEAST = 400
"""Minimum size of a shortened text, in bytes in the file."""
OVERHEAD = 40
"""Bytes that a text takes in addition to its words."""


@dataclass
class Texts:
    """Collects texts; other values hold references until `named` replaces them."""

    words: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    """A description of where each text first occurs."""
    _known: dict[str, int] = field(default_factory=dict)

    def put(self, text: str, place: str) -> "Ref | None":
        """A reference to a text; none for an empty one."""
        if not text:
            return None
        text = SURROGATES.sub("\ufffd", text)
        number = self._known.setdefault(text, len(self.words))
        if number == len(self.words):
            self.words.append(text)
            self.places.append(place)
        return Ref(number)


@dataclass(frozen=True)
class Ref:
    """Placeholder of a text until it has its name."""

    number: int


@dataclass(frozen=True)
class Fitted:
    """Texts as they go into the file."""

    names: list[str]
    """By number."""
    words: dict[str, str]
    """By name."""
    cut: int
    """How many were shortened."""
    limit: int
    """Bytes in the file up to which each text is kept; 0: all."""


def fit(words: list[str], budget: int) -> Fitted:
    """Shorten the longest texts, all to the same length, until all of them take at most `budget` bytes."""
    sizes = sorted((size_in_file(text) + OVERHEAD for text in words), reverse=True)
    limit = 0
    if sum(sizes) > budget:
        # Bytes per character differ between texts, so the cap is found on their sizes in the file.
        low, high = LEAST, max(sizes, default=LEAST)
        while high - low > LEAST // 4:
            middle = (low + high) // 2
            if sum(min(size, middle + 2 * OVERHEAD) for size in sizes) > budget:
                high = middle
            else:
                low = middle
        limit = low
    kept = [shortened(text, limit) if limit and size_in_file(text) > limit else text for text in words]
    names = [text_id(text) for text in kept]
    return Fitted(names, dict(zip(names, kept, strict=True)), sum(new != old for new, old in zip(kept, words, strict=True)), limit)


def shortened(text: str, limit: int) -> str:
    """The beginning and the end of a text, `limit` bytes in the file together, and what is missing between them."""
    share = min(1.0, limit / max(size_in_file(text), 1))
    keep = max(2, int(len(text) * share))
    while size_in_file(text[: keep - keep // 3]) + size_in_file(text[len(text) - keep // 3 :]) > limit and keep > 2:
        keep = int(keep * 0.9)
    tail = keep // 3
    missing = len(text) - keep
    return f"{text[: keep - tail]}\n[… {missing:,} characters omitted …]\n{text[len(text) - tail :]}"


def size_in_file(text: str) -> int:
    """Approximate bytes of a text as escaped JSON."""
    escaped = sum(text.count(mark) for mark in "<>&") * 5 + text.count("\n") + text.count('"') + text.count("\\") + text.count("\t")
    return len(text.encode("utf-8", "surrogatepass")) + escaped


def named(value: Any, names: list[str] | None) -> Any:
    """A value with every reference replaced by its text's name."""
    match value:
        case Ref():
            return names[value.number] if names is not None else None
        case dict():
            return {key: named(item, names) for key, item in value.items()}
        case list() | tuple():
            return [named(item, names) for item in value]
        case _:
            return value


_ESCAPES = {mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}
_UNSAFE = re.compile("[<>&\u2028\u2029]")


def json_text(value: Any) -> str:
    """JSON that is inert inside a script element; unsafe characters occur only inside strings, where an escape means the same."""
    text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    return _UNSAFE.sub(lambda match: _ESCAPES[match[0]], SURROGATES.sub("\ufffd", text))


def finite(value: Any) -> Any:
    """The value with null for numbers that JSON cannot express, such as an undefined metric."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
        case _:
            return value
