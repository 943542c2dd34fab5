"""Bytes -> JSON values with their places: one value, or one per line; or an error in one sentence.

Knows encodings and lines, nothing of files or traces; `json_values` reads one value. Invariant: every refusal names a
place, and whatever was odd but readable is noted.
"""

import gc
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.trajectory.json_values import parse_json

EMPTY = "is empty"
UTF_16 = "is UTF-16; save it as UTF-8"
BINARY = "is a binary file, not JSON"
ON_ONE_LINE = "JSON values on one line; each was read"
NOT_BLANK = re.compile(rb"\S")
OBJECT_LINE = re.compile(rb"^\{[^\n]*\}[ \t\r]*$", re.MULTILINE)


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the cyclic garbage collector, which would walk all values of a file repeatedly while they are being created."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Record(NamedTuple):
    """One parsed value with its place in the source."""

    where: str
    value: Any


class Parsed(NamedTuple):
    """The values in a text."""

    in_lines: bool
    """Several values, one per line (or more), rather than one value."""
    records: list[Record]
    notes: list[tuple[str, str]]
    """(place, text) of what was odd but readable."""


def parse_text(data: bytes, max_records: int) -> Parsed:
    """One JSON value, or one per line."""
    with uncollected():
        return _parse_text(data, max_records)


def _parse_text(data: bytes, max_records: int) -> Parsed:
    data = _check_encoding(data)
    if not NOT_BLANK.search(data):
        raise InputError(EMPTY)
    notes: list[tuple[str, str]] = []
    if _looks_like_lines(data):
        return Parsed(True, _parse_lines(data, max_records, notes), notes)
    try:
        value, noted = parse_json(data)
    except InputError:
        if _starts_with_several_values(data):
            return Parsed(True, _parse_lines(data, max_records, notes), notes)
        if several := _values_in_a_row(data, max_records):
            return Parsed(True, several, [("file", f"{len(several)} JSON values one after another; each was read")])
        if len(OBJECT_LINE.findall(data)) > 1:
            return Parsed(True, _parse_lines(data, max_records, notes), notes)
        raise
    return Parsed(False, [Record("", value)], [("file", text) for text in noted])


def _check_encoding(data: bytes) -> bytes:
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(UTF_16, where="byte 0")
    head = data[:4096]
    if b"\0" in head:
        raise InputError(BINARY, where=f"byte {head.index(0)}")
    return data


def _looks_like_lines(data: bytes) -> bool:
    """Several values, one per line: the first line is a complete value and another line with content follows."""
    start, end = _first_line(data)
    if not NOT_BLANK.search(data, end):
        return False
    try:
        msgspec.json.decode(data[start:end])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _starts_with_several_values(data)
    return True


def _starts_with_several_values(data: bytes) -> bool:
    """Whether the first line holds several objects or lists, of which the first is complete."""
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
    """Where the first line with content starts and ends, found without copying a large file."""
    found = NOT_BLANK.search(data)
    start = found.start() if found else 0
    end = data.find(b"\n", start)
    return start, len(data) if end < 0 else end


def _parse_lines(data: bytes, max_records: int, notes: list[tuple[str, str]]) -> list[Record]:
    records: list[Record] = []
    strays: list[tuple[str, InputError]] = []
    for number, line in _lines(data):
        where = f"line {number}"
        try:
            value, noted = parse_json(line)
            records.append(Record(where, value))
            notes.extend((where, text) for text in noted)
        except InputError as error:
            values = _glued_values(line)
            if not values and records and line[:1] == b"{" and data.endswith(line):
                notes.append((where, "the file ends in the middle of this line, which was left out; its program may still be writing"))
                break
            if not values and line[:1] not in (b"{", b"["):
                strays.append((where, InputError(error.reason, where=_in_line(where, error.where))))
                continue
            if not values:
                raise InputError(error.reason, where=_in_line(where, error.where)) from error
            records.extend(Record(f"{where}, value {i + 1}", value) for i, value in enumerate(values))
            notes.append((where, f"{len(values)} {ON_ONE_LINE}"))
        if len(records) > max_records:
            raise InputError(f"contains more than {max_records:,} records", where=where)
    if strays and len(strays) >= len(records):
        raise strays[0][1]
    if strays:
        notes.append((strays[0][0], f"{counted(len(strays), 'line that is', 'lines that are')} not JSON left out; the first is here"))
    return records


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(io.BytesIO(data), start=1):
        if stripped := line.strip():
            yield number, stripped


def _glued_values(line: bytes) -> list[Any]:
    """All values of a line that holds several; an empty list if it is simply broken."""
    values: list[Any] = []
    decoder = json.JSONDecoder()
    try:
        text, position = line.decode(), 0
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            if not isinstance(value, dict | list):
                return []
            values.append(value)
            position = _next_value(text, position)
    except (ValueError, RecursionError):
        return []
    return values if len(values) > 1 else []


def _values_in_a_row(data: bytes, max_records: int) -> list[Record]:
    """Objects that follow each other, each over several lines, as OpenTelemetry's console exporter prints them; else an empty list."""
    if data.lstrip()[:1] != b"{":
        return []
    records: list[Record] = []
    decoder = json.JSONDecoder()
    try:
        text, position = data.decode(), 0
        while (start := _next_value(text, position)) < len(text):
            _, position = decoder.raw_decode(text, start)
            records.append(Record(f"value {len(records) + 1}", parse_json(text[start:position].encode())[0]))
            if len(records) > max_records or not isinstance(records[-1].value, dict):
                return []
    except (ValueError, RecursionError, InputError):
        return []
    return records if len(records) > 1 else []


def _next_value(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position


def _in_line(line: str, inner: str) -> str:
    return f"{line} {inner.removeprefix('line 1 ')}".strip()
