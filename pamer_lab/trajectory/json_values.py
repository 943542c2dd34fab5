"""Parses one JSON value strictly: what is odd but readable is noted, anything else is refused with its place.

Parsing uses msgspec, which is fast, strict and sparing with memory. Only if it refuses does the standard library's slower parser
try again, to accept NaN and half surrogate pairs with a note and to locate the fault. Invariant: an object with a duplicate key is
refused, and every text returned can be written as UTF-8.
"""

import json
import math
import re
from collections import Counter
from typing import Any

import msgspec
import numpy as np

from pamer_lab.errors import InputError

ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
"""One JSON escape: a complete surrogate pair, half of one, or any other."""
TOO_DEEP = "is nested more than 1,000 levels deep"
NOT_UTF8 = "is not UTF-8; save it as UTF-8"
CUT_OFF = "(is it cut off?)"
NOT_JSON = "is text, not JSON. Files that are read: JSON and JSON Lines (also as .gz, .zst or .zip), SQLite, HAR and YAML cassettes"
BLANK_END = re.compile(rb'"[ \t\r\n]+:')
KEY_END = re.compile(rb'"[ \t\r\n]*:')
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?[ \t\r\n]*+(:?)', re.DOTALL)
"""A string, and the colon after it that makes it a key."""

FEW, CHUNK = 1 << 13, 1 << 20
"""Bytes below which keys are counted without arrays, and bytes that one array step looks at."""
MOST_BACKSLASHES = 64
"""Backslashes before a quote that are counted; a quote after more of them counts as a possible end."""


def parse_json(data: bytes) -> tuple[Any, list[str]]:
    """One JSON value, with notes on what was odd; duplicate keys and deep nesting are refused."""
    try:
        value = msgspec.json.decode(data)
    except RecursionError as error:
        raise InputError(TOO_DEEP) from error
    except UnicodeDecodeError:
        raise InputError(NOT_UTF8, where=_place_of_bad_byte(data)) from None
    except msgspec.DecodeError as error:
        return _parse_slowly(data, str(error))
    if _may_have_duplicates(data, value):
        _refuse_duplicates(data)
    return value, []


def _place_of_bad_byte(data: bytes) -> str:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start} (0x{data[error.start]:02x})"
    return ""


def _parse_slowly(data: bytes, complaint: str) -> tuple[Any, list[str]]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InputError(NOT_UTF8, where=_place_of_bad_byte(data)) from None
    text, halves = _mend_surrogates(text)
    constants: list[str] = []

    def constant(word: str) -> float:
        constants.append(word)
        return math.nan

    try:
        value = json.loads(text, parse_constant=constant)
    except RecursionError as error:
        raise InputError(TOO_DEEP) from error
    except json.JSONDecodeError as error:
        raise InputError(_syntax_fault(text, error), where=f"line {error.lineno} column {error.colno}") from error
    except ValueError as error:
        raise InputError(f"is not valid JSON: {error}") from error
    if not constants and not halves:
        raise InputError(f"is not valid JSON: {complaint}")
    notes = [f"{halves} half surrogate pairs became U+FFFD"] if halves else []
    if constants:
        notes.append(f"{', '.join(sorted(set(constants)))} is not JSON; read as a missing value ({len(constants)}x)")
    return value, notes


def _syntax_fault(text: str, error: json.JSONDecodeError) -> str:
    if error.msg.startswith("Unterminated string"):
        return f"ends in the middle of a string {CUT_OFF}"
    if text.lstrip()[:1] not in ("{", "["):
        return NOT_JSON
    complaint = "no value begins here" if error.msg == "Expecting value" else error.msg
    return (
        f"ends in the middle of a value {CUT_OFF}: {complaint}"
        if error.pos >= len(text.rstrip()) - 1
        else f"is not valid JSON: {complaint}"
    )


def _mend_surrogates(text: str) -> tuple[str, int]:
    """Replace half surrogate pairs, which cannot be written as UTF-8, with U+FFFD; also returns how many there were."""
    halves = 0

    def mend(escape: re.Match[str]) -> str:
        nonlocal halves
        if not escape["half"]:
            return escape[0]
        halves += 1
        return "\\ufffd"

    return (ESCAPE.sub(mend, text), halves) if "\\ud" in text.lower() else (text, 0)


def _may_have_duplicates(data: bytes, value: Any) -> bool:
    """Whether the text may have more keys than the parsed value."""
    keys = 0
    objects: list[Any] = [value] if type(value) is dict else []
    lists: list[Any] = [value] if type(value) is list else []
    while objects or lists:  # depth by depth, without a call per value, which would cost more than the parsing
        keys += sum(map(len, objects))
        below: list[Any] = []
        inside: list[Any] = []
        for held in (*map(dict.values, objects), *lists):
            for child in held:
                if type(child) is str:
                    continue
                if type(child) is dict:
                    below.append(child)
                elif type(child) is list:
                    inside.append(child)
        objects, lists = below, inside
    if not keys:
        return False
    # Every key ends with a quote and a colon; strings may contain more of these, so then the strings themselves are checked.
    return _key_ends(data) > keys and b"".join(STRING.findall(data)).count(b":") > keys


def _key_ends(data: bytes) -> int:
    """Upper bound on the number of keys: quotes before a colon, without those that one backslash (or three…) makes part of a string."""
    if len(data) < FEW:
        return len(KEY_END.findall(data))
    text = np.frombuffer(data, dtype=np.uint8)
    found = 0
    for start in range(0, len(text), CHUNK):
        colons = np.flatnonzero(text[start : start + CHUNK] == ord(":")) + start
        before = text[colons - 1]  # for a colon at the very beginning: the last byte, which never ends a key
        if (before <= ord(" ")).any() and (spaced := len(BLANK_END.findall(data, max(0, start - CHUNK), start + CHUNK))):
            found += spaced
        quotes = colons[before == ord('"')] - 1
        escaped = quotes[text[quotes - 1] == ord("\\")]
        found += len(quotes) - len(escaped) + _unescaped(text, escaped)
    return found


def _unescaped(text: Any, quotes: Any) -> int:
    """How many of these quotes, each after a backslash, end a string because the backslashes come in pairs; unclear ones count."""
    ended = 0
    for run in range(2, MOST_BACKSLASHES):
        more = (quotes >= run) & (text[np.maximum(quotes - run, 0)] == ord("\\"))
        ended += int(np.count_nonzero(~more)) if run % 2 else 0
        quotes = quotes[more]
        if not len(quotes):
            return ended
    return ended + len(quotes)


def _refuse_duplicates(data: bytes) -> None:
    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise InputError(f"has the key {twice!r} twice in one object; keep one", where=_place_of_duplicate(data, twice))
        return built

    json.loads(data, object_pairs_hook=check)


def _place_of_duplicate(data: bytes, key: str) -> str:
    """Line of the key's last occurrence: exact in small files, a pointer in large ones."""
    position = data.rfind(json.dumps(key).encode())
    return f"line {data.count(10, 0, max(position, 0)) + 1}"
