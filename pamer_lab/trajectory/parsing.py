"""Bytes -> JSON values with their places: one value, or several in lines, or one clear sentence.

Knows encodings and JSON; nothing of files or traces. What always holds: every refusal names a place; whatever was odd
but readable is noted; every text that comes out can be written as UTF-8 again.

Parsing uses msgspec, which is fast, strict and sparing with memory. Only when it refuses does the standard library's
slower parser look again: to accept NaN and half surrogate pairs with a note, and to say where the fault is.
"""

import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pamer_lab.errors import InputError

NOT_BLANK = re.compile(rb"\S")
ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
"""One JSON escape: a whole surrogate pair, half of one, or any other."""


class Record(NamedTuple):
    """One parsed value with its place in the source."""

    where: str
    value: Any


class Parsed(NamedTuple):
    """What some bytes hold."""

    in_lines: bool
    """Several values, one per line (or more), rather than one value."""
    records: list[Record]
    notes: list[tuple[str, str]]
    """(place, text) of what was odd but readable."""


def parse_text(data: bytes, max_records: int) -> Parsed:
    """One JSON value, or one per line."""
    data = _check_encoding(data)
    if not NOT_BLANK.search(data):
        raise InputError("is empty")
    notes: list[tuple[str, str]] = []
    if _looks_like_lines(data):
        return Parsed(True, _parse_lines(data, max_records, notes), notes)
    try:
        value, noted = parse_json(data)
    except InputError:
        if not _starts_with_several_values(data):
            raise
        return Parsed(True, _parse_lines(data, max_records, notes), notes)
    return Parsed(False, [Record("", value)], [("file", text) for text in noted])


def _check_encoding(data: bytes) -> bytes:
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError("is UTF-16; save it as UTF-8", where="byte 0")
    head = data[:4096]
    if b"\0" in head:
        raise InputError("is a binary file, not JSON", where=f"byte {head.index(0)}")
    return data


def _looks_like_lines(data: bytes) -> bool:
    """Several values, one per line: the first line is a whole value and another line with content follows."""
    start, end = _first_line(data)
    if not NOT_BLANK.search(data, end):
        return False
    try:
        msgspec.json.decode(data[start:end])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _starts_with_several_values(data)
    return True


def _starts_with_several_values(data: bytes) -> bool:
    """The first line holds two objects, glued together, of which the first is complete."""
    start, end = _first_line(data)
    if data[start : start + 1] not in (b"{", b"["):
        return False
    try:
        text = data[start:end].decode()
        _, stop = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[stop:].lstrip(" \t\r,")[:1] in ("{", "[")


def _first_line(data: bytes) -> tuple[int, int]:
    """Where the first line with content starts and ends; a large file is not copied to find out."""
    found = NOT_BLANK.search(data)
    start = found.start() if found else 0
    end = data.find(b"\n", start)
    return start, len(data) if end < 0 else end


def _parse_lines(data: bytes, max_records: int, notes: list[tuple[str, str]]) -> list[Record]:
    records: list[Record] = []
    for number, line in _lines(data):
        where = f"line {number}"
        try:
            value, noted = parse_json(line)
            records.append(Record(where, value))
            notes.extend((where, text) for text in noted)
        except InputError as error:
            values = _glued_values(line)
            if not values:
                raise InputError(error.reason, where=_in_line(where, error.where)) from error
            records.extend(Record(f"{where}, value {i + 1}", value) for i, value in enumerate(values))
            notes.append((where, f"{len(values)} JSON values on one line; each was read"))
        if len(records) > max_records:
            raise InputError(f"holds more than {max_records:,} records", where=where)
    return records


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(io.BytesIO(data), start=1):
        if stripped := line.strip():
            yield number, stripped


def _glued_values(line: bytes) -> list[Any]:
    """All values of a line that holds several, or nothing when it is simply broken."""
    values: list[Any] = []
    decoder = json.JSONDecoder()
    try:
        text, position = line.decode(), 0
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            if not isinstance(value, dict | list):
                return []
            values.append(value)
            while position < len(text) and text[position] in " \t\r\n,":
                position += 1
    except (ValueError, RecursionError):
        return []
    return values if len(values) > 1 else []


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
    """More key-colons in the text than keys in the value; a false alarm is possible, and is settled by the slow look."""
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
    colons = data.count(b'":') - data.count(b'\\":')
    if colons < keys:  # some writer puts a blank before its colons
        colons += data.count(b'" :') - data.count(b'\\" :')
    return colons > keys


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


def _in_line(line: str, inner: str) -> str:
    return f"{line} {inner.removeprefix('line 1 ')}".strip()
