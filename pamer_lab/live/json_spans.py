"""Byte positions of the parts of a JSON text: members of an object, elements of an array.

Nothing is re-serialized: an edit cuts and inserts bytes and leaves all others unchanged. The parser gives the length of each part; between
two parts there is only punctuation. Invariant: spans exclude surrounding white space.
"""

import re
from typing import Any

import msgspec
import orjson

Span = tuple[int, int]
"""First byte, and the byte after the last."""

_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SPACE = re.compile(rb"[ \t\r\n]*")
_BETWEEN = re.compile(rb"[ \t\r\n]*,?[ \t\r\n]*")
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
_KEY = re.compile(rb'(?<=[{, \t\r\n])("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)


def without_halves(body: bytes) -> bytes:
    """The text with U+FFFD for each escaped lone surrogate; programs that truncate texts write those, and parsers reject them."""
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], body)


def members(body: bytes, span: Span | None = None) -> dict[str, Span]:
    """Spans of an object's values by key; `ValueError` if it is not an object or has a duplicate key."""
    start, stop = span or (0, len(body))
    found: dict[str, Span] = {}
    at = _after(_SPACE, body, start) + 1
    for key, value in _decoded(_OBJECT, body, start, stop).items():
        named = _KEY.match(body, _after(_BETWEEN, body, at))
        if named is None or orjson.loads(named[1]) != key:
            raise ValueError("a key occurs twice")
        found[key] = named.end(), named.end() + len(memoryview(value))
        at = found[key][1]
    if body[_after(_SPACE, body, at)] != ord("}"):  # a repeated key has replaced its first value
        raise ValueError("a key occurs twice")
    return found


def elements(body: bytes, span: Span) -> list[Span]:
    """Spans of an array's elements in order; `ValueError` if it is not an array."""
    found: list[Span] = []
    at = _after(_SPACE, body, span[0]) + 1
    for value in _decoded(_ARRAY, body, *span):
        start = _after(_BETWEEN, body, at)
        at = start + len(memoryview(value))
        found.append((start, at))
    return found


def _decoded(decoder: "msgspec.json.Decoder[Any]", body: bytes, start: int, stop: int) -> Any:
    try:
        return decoder.decode(memoryview(body)[start:stop])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def _after(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = pattern.match(body, at)
    assert found is not None  # both patterns also match the empty string
    return found.end()
