"""A file or folder -> parsed JSON, within stated limits, or one clear sentence.

Knows bytes, encodings, gzip, zip and JSON; nothing of traces. What always holds: a file over the limits is
refused before it is held in memory; every refusal names the file and the place; nothing is written.

Parsing uses orjson, which is fast and strict. Only when it refuses does the standard library's slower parser
look again, to accept NaN as a missing value and to say where the fault is.
"""

import gzip
import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError

Kind = Literal["json", "jsonl", "zip", "folder"]
"""`json`: one value. `jsonl`: one value per line (or several). `zip`: named members. `folder`: numbered event files."""

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
EVENT_FILE = re.compile(r"^event-(\d+).*\.json$")


@dataclass(frozen=True)
class Record:
    """One parsed value with its place in the source."""

    where: str
    value: Any


@dataclass(frozen=True)
class Document:
    """A parsed source, ready for format detection."""

    path: str
    kind: Kind
    sha256: str
    records: tuple[Record, ...]
    """One record for `json`; one per value for `jsonl`, per member for `zip`, per file for `folder`."""
    notes: tuple[tuple[str, str], ...] = field(default=())
    """(place, text) of what was odd but readable, such as two objects on one line."""

    @property
    def root(self) -> Any:
        """The value of a `json` document; for the others, the first record's value."""
        return self.records[0].value


def load_document(path: Path, limits: ReadLimits, *, name: str = "") -> Document:
    """Read one file (plain, `.gz` or zip) or one folder of event files."""
    shown = name or str(path)
    try:
        if path.is_dir():
            return _load_folder(path, limits, shown)
        size = path.stat().st_size
        if size > limits.max_bytes:
            raise InputError(
                f"{_mb(size)} is over the limit of {_mb(limits.max_bytes)}; split it, or raise PAMER_LAB_MAX_FILE_MB", path=shown
            )
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=shown) from error
    return parse_document(data, limits, name=shown)


def parse_document(data: bytes, limits: ReadLimits, *, name: str) -> Document:
    """Parse bytes that are already in memory (an upload, or `load_document`)."""
    try:
        if data[:2] == GZIP_MAGIC:
            data = _gunzip(data, limits)
        if data[:4] == ZIP_MAGIC:
            return _parse_zip(data, limits, name)
        digest = hashlib.sha256(data).hexdigest()
        kind, records, notes = _parse_text(data, limits)
    except InputError as error:
        raise error.at(path=name) from error
    return Document(name, kind, digest, tuple(records), tuple(notes))


def _load_folder(path: Path, limits: ReadLimits, shown: str) -> Document:
    files = sorted((int(match[1]), file) for file in path.iterdir() if (match := EVENT_FILE.match(file.name)))
    if not files:
        raise InputError("holds no event-NNNNN files", path=shown)
    digest = hashlib.sha256()
    records: list[Record] = []
    total = 0
    for _, file in files:
        total += file.stat().st_size
        if total > limits.max_bytes:
            raise InputError(f"its event files exceed the limit of {_mb(limits.max_bytes)}", path=shown)
        data = file.read_bytes()
        digest.update(data)
        try:
            records.append(Record(file.name, _parse_json(data, limits)[0]))
        except InputError as error:
            raise error.at(path=shown, where=file.name) from error
    return Document(shown, "folder", digest.hexdigest(), tuple(records))


def _gunzip(data: bytes, limits: ReadLimits) -> bytes:
    out = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(1 << 20):
                if out.tell() + len(chunk) > limits.max_bytes:
                    raise InputError(f"unpacks to more than the limit of {_mb(limits.max_bytes)} (a gzip bomb?)")
                out.write(chunk)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"is not a complete gzip file ({error})") from error
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise InputError(f"is a damaged gzip file ({error})") from error
        raise
    return out.getvalue()


def _parse_zip(data: bytes, limits: ReadLimits, name: str) -> Document:
    """The JSON members of a zip such as Inspect's `.eval`, in name order."""
    records: list[Record] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".json")]
            if sum(info.file_size for info in members) > limits.max_bytes:
                raise InputError(f"unpacks to more than the limit of {_mb(limits.max_bytes)}")
            if len(members) > limits.max_members:
                raise InputError(f"holds {len(members):,} members; the limit is {limits.max_members:,}")
            left = limits.max_bytes
            for info in sorted(members, key=lambda info: info.filename):
                with archive.open(info) as member:
                    body = member.read(left + 1)
                left -= len(body)
                if left < 0:
                    raise InputError(f"unpacks to more than the limit of {_mb(limits.max_bytes)}")
                try:
                    records.append(Record(info.filename, _parse_json(body, limits)[0]))
                except InputError as error:
                    raise error.at(where=info.filename) from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise InputError(f"is a damaged or unsupported zip ({error})") from error
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise InputError(f"is a damaged zip ({error})") from error
        raise
    if not records:
        raise InputError("is a zip with no JSON member")
    return Document(name, "zip", hashlib.sha256(data).hexdigest(), tuple(records))


def _parse_text(data: bytes, limits: ReadLimits) -> tuple[Kind, list[Record], list[tuple[str, str]]]:
    data = _check_encoding(data)
    if not data.strip():
        raise InputError("is empty")
    notes: list[tuple[str, str]] = []
    if _looks_like_lines(data):
        return "jsonl", _parse_lines(data, limits, notes), notes
    value, noted = _parse_json(data, limits)
    return "json", [Record("", value)], [("file", text) for text in noted]


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
    first, _, rest = data.lstrip().partition(b"\n")
    if not rest.strip():
        return _several_values(first)
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        return first[:1] in b"{[" and rest.lstrip()[:1] in (b"{", b"[") and _several_values(first)
    return True


def _several_values(line: bytes) -> bool:
    """Two objects glued on one line, where the first is complete."""
    if line[:1] not in (b"{", b"["):
        return False
    try:
        text = line.decode()
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return bool(text[end:].strip())


def _parse_lines(data: bytes, limits: ReadLimits, notes: list[tuple[str, str]]) -> list[Record]:
    records: list[Record] = []
    for number, line in _lines(data):
        where = f"line {number}"
        try:
            value, noted = _parse_json(line, limits)
            records.append(Record(where, value))
            notes.extend((where, text) for text in noted)
        except InputError as error:
            values = _glued_values(line)
            if not values:
                raise InputError(error.reason, where=_in_line(where, error.where)) from error
            records.extend(Record(f"{where}, value {i + 1}", value) for i, value in enumerate(values))
            notes.append((where, f"{len(values)} JSON values on one line; each was read"))
        if len(records) > limits.max_members:
            raise InputError(f"holds more than {limits.max_members:,} records", where=where)
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


def _parse_json(data: bytes, limits: ReadLimits) -> tuple[Any, list[str]]:
    """One JSON value, with notes on what was odd; duplicate keys and deep nesting are refused."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _parse_slowly(data, error)
    if _may_have_duplicates(data, value):
        _refuse_duplicates(data)
    return value, []


def _parse_slowly(data: bytes, fast: orjson.JSONDecodeError) -> tuple[Any, list[str]]:
    if "ecursion" in fast.msg:
        raise InputError("is nested more than 1,000 levels deep", where=f"byte {fast.pos}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte 0x{data[error.start]:02x}); save it as UTF-8", where=f"byte {error.start}") from error
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
    if not constants:
        raise InputError(f"is not valid JSON: {fast.msg}", where=f"line {fast.lineno} column {fast.colno}")
    return value, [f"{', '.join(sorted(set(constants)))} is not JSON; read as a missing value ({len(constants)}x)"]


def _may_have_duplicates(data: bytes, value: Any) -> bool:
    """Fewer keys in the parsed value than key-colons in the text; may be a false alarm, never a miss for plain JSON."""
    colons = data.count(b'":') - data.count(b'\\":') + data.count(b'" :') - data.count(b'\\" :')
    keys = 0
    pending = [value]
    while pending:
        item = pending.pop()
        if type(item) is dict:
            keys += len(item)
            pending.extend(child for child in item.values() if type(child) is dict or type(child) is list)
        elif type(item) is list:
            pending.extend(child for child in item if type(child) is dict or type(child) is list)
    return colons > keys


def _refuse_duplicates(data: bytes) -> None:
    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            names = [key for key, _ in pairs]
            twice = next(key for key in names if names.count(key) > 1)
            raise InputError(f"has the key {twice!r} twice in one object; keep one", where=_place_of_duplicate(data, twice))
        return built

    json.loads(data, object_pairs_hook=check)


def _place_of_duplicate(data: bytes, key: str) -> str:
    """Line of the key's last occurrence: exact in small files, a pointer in large ones."""
    position = data.rfind(json.dumps(key).encode())
    return f"line {data.count(10, 0, max(position, 0)) + 1}"


def _in_line(line: str, inner: str) -> str:
    return f"{line} {inner.removeprefix('line 1 ')}".strip()


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
