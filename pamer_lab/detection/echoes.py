"""Finds a known secret wherever a text repeats it: as it is, escaped, in base64 or in hexadecimal digits.

Servers and tools send keys back in their own spelling: `user:key` in base64, a key in an address, a JSON text in a JSON text.
Invariant: time is linear in the text, and a text without any trace of a value costs a few plain searches.
"""

import base64
import re
import string
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pamer_lab.detection.views import View, unwrapped, views

_LETTER = r"(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"
ESCAPES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\\u00{_LETTER}",
        rf"\\x{_LETTER}",
        r"\\u\{",
        rf"%{_LETTER}",
        rf"&#[xX]0*{_LETTER};",
        r"&#0*(?:4[89]|[5-9][0-9]|1[0-9]{2});",
    )
)
"""Escapes of a letter or digit, which no usual encoder writes. One pattern each: a pattern with a fixed beginning is searched fast."""
_WORD = re.compile(r"[A-Za-z0-9]+")
_PIECE = 12
"""Characters of a trace: short enough that a line break cuts at most one of two neighbours."""
_EDGE = frozenset(string.ascii_letters + string.digits + "+/-_")


def repeats(text: str, values: Sequence[str]) -> list[tuple[int, int]]:
    """Where a text holds one of the values in any spelling: spans in order, without overlap."""
    values = [value for value in values if value]
    if not values or not may_repeat(text, values):
        return []
    found = sorted({span for view in _looked_at(text) for value in values for span in _in_view(view, value)})
    apart: list[tuple[int, int]] = []
    for start, end in found:
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def without_values(text: str, values: Sequence[str], words: str) -> str:
    """The text with `words` in place of each of the values, however it is spelled."""
    pieces, done = [], 0
    for start, end in repeats(text, values):
        pieces += [text[done:start], words]
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def may_repeat(text: str, values: Sequence[str]) -> bool:
    """A quick check: False only if no spelling of a value can be in the text."""
    return any(escape.search(text) for escape in ESCAPES) or any(trace in text for value in values for trace in traces(value))


@lru_cache(maxsize=64)
def traces(value: str) -> tuple[str, ...]:
    """Pieces of the longest word of each encoding; every spelling of a value without escaped letters contains one of them."""
    words = [max(_WORD.findall(spelling) or [spelling], key=len) for spelling in (value, *_encoded(value))]
    pieces = [(word[:_PIECE], word[_PIECE : 2 * _PIECE]) if len(word) >= 2 * _PIECE else (word,) for word in words]
    return tuple({piece for two in pieces for piece in two})


def _looked_at(text: str) -> Iterator[View]:
    """The text at each level of escapes, and the last one without the breaks of its lines."""
    view = View(text)
    for view in views(text):
        yield view
    if joined := unwrapped(view):
        yield joined[0]


def _in_view(view: View, value: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(re.escape(value), view.text):
        yield view.place(*match.span())
    for spelling in _encoded(value):
        for match in re.finditer(rf"{re.escape(spelling)}[A-Za-z0-9+/_\-]?={{0,2}}", view.text):
            # The letters before and after it encode a part of the value too.
            start = match.start() - (match.start() > 0 and view.text[match.start() - 1] in _EDGE)
            yield view.place(start, match.end())


@lru_cache(maxsize=64)
def _encoded(value: str) -> tuple[str, ...]:
    """The value in hexadecimal digits, and the letters of base64 that depend on it alone, wherever in a longer text it begins."""
    plain = value.encode("utf-8", "replace")
    found = [plain.hex(), plain.hex().upper()]
    for before in range(3):
        letters = base64.b64encode(b"\0" * before + plain).decode()
        own = letters[-(-before * 8 // 6) : (before + len(plain)) * 8 // 6]
        found += [own, own.replace("+", "-").replace("/", "_")]
    return tuple(dict.fromkeys(found))
