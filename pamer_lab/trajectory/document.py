"""A file or folder -> parsed JSON within the limits, or an error in one sentence.

`unpacking.py` handles compression and size limits, `parsing.py` reads JSON; nothing here knows traces. Invariant: a file over the
limits is refused before it is in memory, every refusal names the file and the place, and nothing is written, so that no name
inside a file ever becomes a path.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError
from pamer_lab.opening import Budget, read_file, regular
from pamer_lab.trajectory.json_values import parse_json
from pamer_lab.trajectory.markdown_chats import reason_of
from pamer_lab.trajectory.parsing import Record, parse_text
from pamer_lab.trajectory.piece_folders import pieces
from pamer_lab.trajectory.sqlite_file import SQLITE_MAGIC, is_wal, read_tables, with_log
from pamer_lab.trajectory.unpacking import GZIP_MAGIC, ZSTD_MAGIC, gunzip, json_members, mb, refuse_many_values, unzstd
from pamer_lab.trajectory.yaml_cassette import is_cassette, read_cassette

Kind = Literal["json", "jsonl", "zip", "folder", "sqlite"]
"""`json`: one value. `jsonl`: one value per line (or several). `zip`: named members. `folder`: numbered event files,
or one file per message.
`sqlite`: one value, the rows of each table by its name."""

SUFFIXES = frozenset((".json", ".jsonl", ".ndjson", ".gz", ".zst", ".zip"))
"""Usual endings of the files read here; a format may add its own."""
ZIP_MAGIC = b"PK\x03\x04"
WAL_NOTE = "is SQLite in WAL mode: what was written last may be in its -wal file, which is not here; close its program first"
LOG_PART = re.compile(r"\A(?:samples/.*\.json$|_journal/|.*header\.json$)")
"""Members of a zip that belong to one evaluation log."""
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
    """How far its traces may expand; a reader that repeats parts of the source takes from it first."""
    members: tuple[tuple[str, bytes], ...] = field(default=(), compare=False)
    """(name, bytes) of the files in a zip of independent files; each is read separately."""

    @property
    def root(self) -> Any:
        """The value of a `json` document; for other kinds the first record's value, or None without records."""
        return self.records[0].value if self.records else None


def load_document(path: Path, limits: ReadLimits, *, name: str = "", roots: Sequence[Path] = ()) -> Document:
    """Read a file (plain, `.gz`, `.zst`, zip, or SQLite with its log) or a folder of events or pieces; `roots` limit where it may be."""
    shown = name or str(path)
    try:
        if path.is_dir():
            return _load_folder(path, limits, shown, roots or (path,))
        data = read_file(path, limits.max_bytes, roots=roots)
        if is_wal(data) and regular(log := path.with_name(f"{path.name}-wal")):
            data = with_log(data, read_file(log, limits.max_bytes, roots=roots), limits.max_bytes)
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
        if data[:4] == ZSTD_MAGIC:
            data = unzstd(data, limits.max_bytes)
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
        raise InputError("contains neither event-NNNNN files nor files of one message each", path=shown)
    if len(files) > limits.max_archive_members:
        raise InputError(f"contains more than {limits.max_archive_members:,} event or message files, which is the limit", path=shown)
    read = ((name, read_file(file, limits.max_bytes, roots=roots)) for name, file in files)
    return parse_events(read, limits, name=shown)


def parse_events(files: Iterable[tuple[str, bytes]], limits: ReadLimits, *, name: str) -> Document:
    """Event files, given in order, as one document."""
    digest = hashlib.sha256()
    records: list[Record] = []
    total = 0
    for file, data in files:
        total += len(data)
        if total > limits.max_bytes:
            raise InputError(f"its files together exceed the limit of {mb(limits.max_bytes)}", path=name)
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
    """The JSON members of a zip in name order: the parts of one log, such as Inspect's `.eval`, or files that are read one by one."""
    members = tuple(json_members(data, limits))
    if not members:
        raise InputError("is a zip without a JSON member")
    digest = hashlib.sha256(data).hexdigest()
    if not any(LOG_PART.match(member) for member, _ in members):
        return Document(name, "zip", digest, (), members=members)
    records: list[Record] = []
    for member, body in members:
        try:
            records.append(Record(member, parse_json(body)[0]))
        except InputError as error:
            raise error.at(where=member) from error
    return Document(name, "zip", digest, tuple(records), budget=Budget(sum(len(body) for _, body in members)))


def member_documents(document: Document, limits: ReadLimits) -> Iterator[Document | InputError]:
    """The files of a zip, parsed one at a time; a file that cannot be read yields its error."""
    for member, body in document.members:
        name = f"{document.path}/{member}"
        try:
            if body[:4] in (ZIP_MAGIC, ZSTD_MAGIC) or body[:2] == GZIP_MAGIC:
                raise InputError("is packed again inside the zip; unpack it first", path=name)
            yield parse_document(body, limits, name=name)
        except InputError as error:
            yield error
