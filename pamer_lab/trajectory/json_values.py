"""One JSON value out of bytes, strictly: what is odd but readable is noted, what is not is refused with its place.

Parsing uses msgspec, which is fast, strict and sparing with memory. Only when it refuses does the standard library's slower parser
look again: to accept NaN and half surrogate pairs with a note, and to say where the fault is. Invariant: an object with a
key twice is refused, and every text that comes out can be written as UTF-8 again.
"""

import json
import math
import re
from collections import Counter
from typing import Any

import msgspec

from pamer_lab.errors import InputError

ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
"""One JSON escape: a whole surrogate pair, half of one, or any other."""
KEY_END = re.compile(rb'"[ \t\r\n]*:')
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?[ \t\r\n]*+(:?)', re.DOTALL)
"""A text, and the colon behind it that makes it a key."""


def parse_json(data: bytes) -> tuple[Any, list[str]]:
    """One JSON value, with notes on what was odd; duplicate keys and deep nesting are refused."""
    try:
        value = msgspec.json.decode(data)
    except RecursionError as error:
        raise InputError("is nested more than 1,000 levels deep") from error
    except UnicodeDecodeError:
        raise InputError("is not UTF-8; save it as UTF-8", where=_place_of_bad_byte(data)) from None
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
        raise InputError("is not UTF-8; save it as UTF-8", where=_place_of_bad_byte(data)) from None
    text, halves = _mend_surrogates(text)
    constants: list[str] = []

    def constant(word: str) -> float:
        constants.append(word)
        return math.nan

    try:
        value = json.loads(text, parse_constant=constant)
    except RecursionError as error:
        raise InputError("is nested more than 1,000 levels deep") from error
    except json.JSONDecodeError as error:
        what = "ends in the middle of a value (is it cut off?)" if error.pos >= len(text.rstrip()) - 1 else "is not valid JSON"
        if error.msg.startswith("Unterminated string"):
            what = "ends in the middle of a string (is it cut off?)"
        raise InputError(f"{what}: {error.msg}", where=f"line {error.lineno} column {error.colno}") from error
    except ValueError as error:
        raise InputError(f"is not valid JSON: {error}") from error
    if not constants and not halves:
        raise InputError(f"is not valid JSON: {complaint}")
    notes = [f"{halves} half surrogate pairs became U+FFFD"] if halves else []
    if constants:
        notes.append(f"{', '.join(sorted(set(constants)))} is not JSON; read as a missing value ({len(constants)}x)")
    return value, notes


def _mend_surrogates(text: str) -> tuple[str, int]:
    """Half surrogate pairs cannot be written as UTF-8 anywhere; they become the replacement character."""
    halves = 0

    def mend(escape: re.Match[str]) -> str:
        nonlocal halves
        if not escape["half"]:
            return escape[0]
        halves += 1
        return "\\ufffd"

    return (ESCAPE.sub(mend, text), halves) if "\\ud" in text.lower() else (text, 0)


def _may_have_duplicates(data: bytes, value: Any) -> bool:
    """More keys in the text than in the value."""
    keys = 0
    containers = [value]
    for item in containers:  # grows while it is walked
        children = item
        if type(item) is dict:
            keys += len(item)
            children = item.values()
        elif type(item) is not list:
            continue
        containers.extend([child for child in children if type(child) is dict or type(child) is list])
    # Every key ends with such a sign; texts may hold further ones, and then the texts themselves are told apart.
    return len(KEY_END.findall(data)) > keys and b"".join(STRING.findall(data)).count(b":") > keys


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
