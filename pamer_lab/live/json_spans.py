"""Where the parts of a JSON text are, in bytes: members of an object, elements of an array.

Nothing is parsed into values and nothing is written again, so whoever edits a body cuts and inserts bytes and leaves all others as they
came. Knows JSON's punctuation only: give it texts that a parser has accepted. Invariant: spans are without surrounding white space.
"""

import re

import orjson

Span = tuple[int, int]
"""First byte, and the byte after the last."""

_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]', re.DOTALL)
_SPACE = b" \t\r\n"


def members(body: bytes, span: Span | None = None) -> dict[str, Span]:
    """Spans of an object's values by key; `ValueError` where it is no object or has a key twice."""
    found: dict[str, Span] = {}
    for start, colon, end in _parts(body, span or (0, len(body)), b"{"):
        key = orjson.loads(body[start:colon])
        if key in found:
            raise ValueError(f"the key {key!r} is there twice")
        found[key] = _stripped(body, colon + 1, end)
    return found


def elements(body: bytes, span: Span) -> list[Span]:
    """Spans of an array's elements in order; `ValueError` where it is no array."""
    return [_stripped(body, start, end) for start, _, end in _parts(body, span, b"[")]


def _parts(body: bytes, span: Span, opening: bytes) -> list[tuple[int, int, int]]:
    """(start, colon, end) of what the commas of one level separate; the colon is -1 in arrays."""
    start, stop = _stripped(body, *span)
    if body[start : start + 1] != opening:
        raise ValueError(f"expected {opening.decode()} at byte {start}")
    found: list[tuple[int, int, int]] = []
    depth, begun, colon = 0, start + 1, -1
    for token in _TOKENS.finditer(body, start, stop):
        sign = body[token.start()]
        if sign in b"{[":
            depth += 1
        elif sign in b"}]":
            depth -= 1
            if depth == 0:
                if found or body[begun : token.start()].strip(_SPACE):
                    found.append((begun, colon, token.start()))
                return found
        elif depth == 1 and sign == ord(","):
            found.append((begun, colon, token.start()))
            begun, colon = token.end(), -1
        elif depth == 1 and sign == ord(":"):
            colon = token.start()
    raise ValueError("the text ends inside a value")


def _stripped(body: bytes, start: int, end: int) -> Span:
    while start < end and body[start] in _SPACE:
        start += 1
    while end > start and body[end - 1] in _SPACE:
        end -= 1
    return start, end
