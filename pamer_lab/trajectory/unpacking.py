"""Compressed bytes -> plain bytes within the limits, and the check of a text before it is parsed.

Knows gzip, zstd, zip and how many values a JSON text holds; nothing of files or traces. Invariant: what untrusted bytes
would unpack or parse to is counted before it is stored, so that a bomb costs a little time and no memory; a member's name
is a label and never a path.
"""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator

import numpy as np

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError

TOO_LARGE = "unpacks to more than the limit"
MOST_EXPANSION = 1_032
"""Maximum bytes that deflate can make of one."""
CHUNK = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
CENTRAL_ENTRY = b"PK\x01\x02"
"""Begins every entry of a zip's directory."""
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93}
"""Stored, deflate, and Zstandard where this Python has it. Others reserve as much memory as the file asks for."""
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
NAME_CHARACTERS = 200
FAULTS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError, LookupError, struct.error, zlib.error)
"""What `zipfile` raises on damaged bytes; ValueError includes names that are not UTF-8."""


def gunzip(data: bytes, limits: ReadLimits) -> bytes:
    """The plain bytes; what may exceed the limit is first unpacked without being kept, so that a bomb is refused."""
    try:
        if len(data) * MOST_EXPANSION > limits.max_bytes:
            size = 0
            for chunk in _chunks(data):
                size += len(chunk)
                if size > limits.max_bytes:
                    raise InputError(f"{TOO_LARGE} of {mb(limits.max_bytes)} (a gzip bomb?)")
        out = io.BytesIO()
        for chunk in _chunks(data):
            out.write(chunk)
        return out.getvalue()
    except (OSError, EOFError) as error:
        raise InputError(f"is not a complete gzip file ({error})") from error
    except (ValueError, zlib.error) as error:
        raise InputError(f"is a damaged gzip file ({error})") from error


def _chunks(data: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def unzstd(data: bytes, most: int) -> bytes:
    """The contents of a zstd frame; refuses a bomb before it is in memory."""
    import pyarrow

    out = io.BytesIO()
    try:
        with pyarrow.input_stream(pyarrow.BufferReader(data), compression="zstd") as stream:
            while chunk := stream.read(CHUNK):
                out.write(chunk)
                if out.tell() > most:
                    raise InputError(f"{TOO_LARGE} of {mb(most)} (a zstd bomb?)")
    except OSError as error:
        raise InputError(f"is not a complete zstd frame ({error})") from error
    return out.getvalue()


def json_members(data: bytes, limits: ReadLimits) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of a zip's members of JSON or JSON lines, in name order; hidden ones (`__MACOSX`) are skipped."""
    entries = data.count(CENTRAL_ENTRY)  # `zipfile` builds an object per entry as soon as it opens
    if entries > limits.max_archive_members:
        raise InputError(f"has {entries:,} members; the limit is {limits.max_archive_members:,}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = sorted((info for info in archive.infolist() if _may_be_json(info.filename)), key=lambda info: info.filename)
            if sum(info.file_size for info in members) > limits.max_bytes:
                raise InputError(f"{TOO_LARGE} of {mb(limits.max_bytes)} (a zip bomb?)")
            left = limits.max_bytes
            for info in members:
                name = shown_name(info.filename)
                if info.compress_type not in METHODS:
                    raise InputError("uses an unsupported compression method; pack it with deflate", where=name)
                with archive.open(info) as member:
                    body = member.read(left + 1)
                left -= len(body)
                if left < 0:
                    raise InputError(f"{TOO_LARGE} of {mb(limits.max_bytes)} (a zip bomb?)")
                refuse_many_values(body, limits)
                yield name, body
    except FAULTS as error:
        raise InputError(f"is a damaged or unsupported zip ({error})") from error


def _may_be_json(name: str) -> bool:
    return name.endswith(JSON_SUFFIXES) and not name.startswith("__MACOSX/")


def refuse_many_values(data: bytes, limits: ReadLimits) -> None:
    """Refuse a JSON text whose values would take many times its size once parsed."""
    most = limits.max_values
    if len(data) <= 2 * most or marks(data) <= most:  # a value and its comma take two bytes
        return
    values = count_values(data)
    if values > most:
        raise InputError(f"has {values:,} JSON values; the limit is {most:,}. Split it, or raise PAMER_LAB_MAX_FILE_MB")


def marks(data: bytes) -> int:
    """Number of commas and opening brackets, including those inside strings."""
    found = 0
    for start in range(0, len(data), CHUNK):
        piece = np.frombuffer(data[start : start + CHUNK], dtype=np.uint8)
        found += sum(int(np.count_nonzero(piece == ord(mark))) for mark in ",[{")
    return found


def count_values(data: bytes) -> int:
    """Number of commas and opening brackets outside strings, counted in chunks."""
    total, inside, start = 0, False, 0
    while start < len(data):
        end = min(start + CHUNK, len(data))
        while end < len(data) and data[end - 1] == ord("\\"):  # never cut an escape
            end += 1
        piece = np.frombuffer(data[start:end].replace(b"\\\\", b"").replace(b'\\"', b""), dtype=np.uint8)
        quotes = np.cumsum(piece == ord('"'), dtype=np.int64) + inside
        marks = (piece == ord(",")) | (piece == ord("[")) | (piece == ord("{"))
        total += int(np.count_nonzero(marks & (quotes % 2 == 0)))
        inside = bool(quotes[-1] % 2) if len(quotes) else inside
        start = end
    return total


def shown_name(name: str) -> str:
    """An untrusted file name as a label: printable and not too long; a long name keeps its end, which says more."""
    clean = "".join(char if char.isprintable() else "\ufffd" for char in name[-NAME_CHARACTERS:])
    return clean if len(name) <= NAME_CHARACTERS else f"…{clean}"


def mb(size: int) -> str:
    """A size for people."""
    return f"{size / 1e6:,.0f} MB"
