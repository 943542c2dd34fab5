"""A file or folder -> parsed JSON, within stated limits, or one clear sentence.

Knows files, gzip and zip; how JSON is read stands in `parsing.py`, and nothing here knows traces. What always holds: a
file over the limits is refused before it is held in memory; every refusal names the file and the place; nothing is
written.
"""

import gzip
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.trajectory.parsing import Record, parse_json, parse_text

Kind = Literal["json", "jsonl", "zip", "folder"]
"""`json`: one value. `jsonl`: one value per line (or several). `zip`: named members. `folder`: numbered event files."""

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
EVENT_FILE = re.compile(r"^event-(\d+).*\.json$")


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
        parsed = parse_text(data, limits.max_members)
    except InputError as error:
        raise error.at(path=name) from error
    kind: Kind = "jsonl" if parsed.in_lines else "json"
    return Document(name, kind, digest, tuple(parsed.records), tuple(parsed.notes))


def _load_folder(path: Path, limits: ReadLimits, shown: str) -> Document:
    files = [(file.name, file) for file in path.iterdir() if EVENT_FILE.match(file.name)]
    if not files:
        raise InputError("holds no event-NNNNN files", path=shown)
    if sum(file.stat().st_size for _, file in files) > limits.max_bytes:
        raise InputError(f"its event files exceed the limit of {_mb(limits.max_bytes)}", path=shown)
    return parse_events(((name, file.read_bytes()) for name, file in sorted(files, key=event_number)), limits, name=shown)


def parse_events(files: Iterable[tuple[str, bytes]], limits: ReadLimits, *, name: str) -> Document:
    """Numbered event files, given in their order, as one document."""
    digest = hashlib.sha256()
    records: list[Record] = []
    total = 0
    for file, data in files:
        total += len(data)
        if total > limits.max_bytes:
            raise InputError(f"its event files exceed the limit of {_mb(limits.max_bytes)}", path=name)
        digest.update(data)
        try:
            records.append(Record(file, parse_json(data)[0]))
        except InputError as error:
            raise error.at(path=name, where=file) from error
    return Document(name, "folder", digest.hexdigest(), tuple(records))


def event_number(file: tuple[str, Any]) -> tuple[int, str]:
    match = EVENT_FILE.match(file[0])
    return (int(match[1]) if match else 0, file[0])


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
                    records.append(Record(info.filename, parse_json(body)[0]))
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


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
