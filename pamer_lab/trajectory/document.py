"""A file or folder -> parsed JSON, within stated limits, or one clear sentence.

`unpacking.py` knows what is packed or too much, `parsing.py` how JSON is read; nothing here knows traces. Invariant: a file
over the limits is refused before it is in memory, every refusal names the file and the place, and nothing is written, so
that no name inside a file ever becomes a path.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.opening import Budget, read_file
from pamer_lab.trajectory.json_values import parse_json
from pamer_lab.trajectory.markdown_chats import reason_of
from pamer_lab.trajectory.parsing import Record, parse_text
from pamer_lab.trajectory.piece_folders import pieces
from pamer_lab.trajectory.sqlite_file import SQLITE_MAGIC, is_wal, read_tables
from pamer_lab.trajectory.unpacking import gunzip, json_members, mb, refuse_many_values
from pamer_lab.trajectory.yaml_cassette import is_cassette, read_cassette

Kind = Literal["json", "jsonl", "zip", "folder", "sqlite"]
"""`json`: one value. `jsonl`: one value per line (or several). `zip`: named members. `folder`: numbered event files,
or messages in files of their own.
`sqlite`: one value, the rows of each table by its name."""

SUFFIXES = frozenset((".json", ".jsonl", ".ndjson", ".gz"))
"""Usual endings of the files read here; a format may add its own."""
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
WAL_NOTE = "is SQLite in WAL mode: what was written last may be in the -wal file beside it, which is not read; close its program first"
EVENT_FILE = re.compile(r"^event-(\d{1,18}+).*\.json$")


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
    budget: Budget = field(default_factory=lambda: Budget(0), compare=False)
    """What its traces may become; a reader that repeats parts of the source takes from it first."""

    @property
    def root(self) -> Any:
        """The value of a `json` document; for the others, the first record's value."""
        return self.records[0].value


def load_document(path: Path, limits: ReadLimits, *, name: str = "", roots: Sequence[Path] = ()) -> Document:
    """Read one file (plain, `.gz` or zip) or one folder of event files or pieces; with `roots`, only below one of them."""
    shown = name or str(path)
    try:
        if path.is_dir():
            return _load_folder(path, limits, shown, roots or (path,))
        data = read_file(path, limits.max_bytes, roots=roots)
    except InputError as error:
        raise InputError(error.reason, path=shown, where=error.where) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", path=shown) from error
    return parse_document(data, limits, name=shown)


def parse_document(data: bytes, limits: ReadLimits, *, name: str) -> Document:
    """Parse bytes that are already in memory (an upload, or `load_document`)."""
    try:
        if data[:2] == GZIP_MAGIC:
            data = gunzip(data, limits)
        if data[:4] == ZIP_MAGIC:
            return _parse_zip(data, limits, name)
        if len(data) > limits.max_bytes:
            raise InputError(f"{mb(len(data))} is over the limit of {mb(limits.max_bytes)}; split it, or raise PAMER_LAB_MAX_FILE_MB")
        digest = hashlib.sha256(data).hexdigest()
        if data[: len(SQLITE_MAGIC)] == SQLITE_MAGIC:
            notes = (("file", WAL_NOTE),) if is_wal(data) else ()
            return Document(name, "sqlite", digest, (Record("", read_tables(data, limits)),), notes, Budget(len(data)))
        if is_cassette(data):
            return Document(name, "json", digest, (Record("", read_cassette(data, limits)),), budget=Budget(len(data)))
        refuse_many_values(data, limits)
        parsed = parse_text(data, limits.max_members)
    except InputError as error:
        if reason := reason_of(data):
            raise InputError(reason, path=name) from error
        raise error.at(path=name) from error
    kind: Kind = "jsonl" if parsed.in_lines else "json"
    return Document(name, kind, digest, tuple(parsed.records), tuple(parsed.notes), Budget(len(data)))


def _load_folder(path: Path, limits: ReadLimits, shown: str, roots: Sequence[Path]) -> Document:
    files = sorted(((file.name, file) for file in path.iterdir() if EVENT_FILE.match(file.name)), key=event_number)
    files = files or list(islice(pieces(path), limits.max_archive_members + 1))
    if not files:
        raise InputError("holds no event-NNNNN files, and no message in files of its own", path=shown)
    if len(files) > limits.max_archive_members:
        raise InputError(f"holds more than {limits.max_archive_members:,} files of events or messages, which is the limit", path=shown)
    read = ((name, read_file(file, limits.max_bytes, roots=roots)) for name, file in files)
    return parse_events(read, limits, name=shown)


def parse_events(files: Iterable[tuple[str, bytes]], limits: ReadLimits, *, name: str) -> Document:
    """Numbered event files, given in their order, as one document."""
    digest = hashlib.sha256()
    records: list[Record] = []
    total = 0
    for file, data in files:
        total += len(data)
        if total > limits.max_bytes:
            raise InputError(f"its files exceed together the limit of {mb(limits.max_bytes)}", path=name)
        digest.update(data)
        try:
            refuse_many_values(data, limits)
            records.append(Record(file, parse_json(data)[0]))
        except InputError as error:
            raise error.at(path=name, where=file) from error
    return Document(name, "folder", digest.hexdigest(), tuple(records), budget=Budget(total))


def event_number(file: tuple[str, Any]) -> tuple[int, str]:
    match = EVENT_FILE.match(file[0])
    return (int(match[1]) if match else 0, file[0])


def _parse_zip(data: bytes, limits: ReadLimits, name: str) -> Document:
    """The JSON members of a zip such as Inspect's `.eval`, in name order."""
    records: list[Record] = []
    total = 0
    for member, body in json_members(data, limits):
        total += len(body)
        try:
            records.append(Record(member, parse_json(body)[0]))
        except InputError as error:
            raise error.at(where=member) from error
    if not records:
        raise InputError("is a zip with no JSON member")
    return Document(name, "zip", hashlib.sha256(data).hexdigest(), tuple(records), budget=Budget(total))
