"""Files and folders -> traces and rejections; one bad file never stops the others.

Invariant: the same bytes give the same trace ids, whatever the file is called and however often it is read.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from msgspec import structs

from pamer_lab.config import ReadLimits
from pamer_lab.errors import FormatError, InputError, NotThisFormat
from pamer_lab.opening import below
from pamer_lab.trajectory.document import (
    EVENT_FILE,
    Document,
    event_number,
    load_document,
    member_documents,
    parse_document,
    parse_events,
)
from pamer_lab.trajectory.draft import NO_MESSAGES, Draft
from pamer_lab.trajectory.folders import reward_beside, trace_sources
from pamer_lab.trajectory.formats import claimants, read_suffixes
from pamer_lab.trajectory.labels import missing_labels
from pamer_lab.trajectory.parsing import uncollected
from pamer_lab.trajectory.piece_folders import group_names, is_described, may_be_piece
from pamer_lab.trajectory.shared.rows import SHAPE_ERRORS, shape_fault
from pamer_lab.trajectory.unpacking import shown_name
from pamer_lab.trajectory.values import Source, Trace, Warning

NO_TRACES = "is a folder without traces"
LISTED = "; `docs/trace-format.md` lists them"


@dataclass(frozen=True)
class Rejection:
    """A file, or one trace in it, that could not be read."""

    path: str
    where: str
    reason: str
    tried: tuple[tuple[str, str], ...] = ()
    """(format, why it gave up) of every reader that claimed the file, if none could use it."""

    @property
    def sentence(self) -> str:
        return InputError(self.reason, path=self.path, where=self.where).sentence + _tried_in_words(self.tried[1:])


@dataclass
class Reading:
    """The result of an import."""

    traces: list[Trace] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)

    def add(self, item: Trace | Rejection) -> None:
        if isinstance(item, Trace):
            self.traces.append(item)
        else:
            self.rejected.append(item)


def read_traces(path: str | Path, limits: ReadLimits | None = None) -> list[Trace]:
    """All traces of a file or folder; the first fault is raised as an `InputError`.

    `path`: a file of any known format, plain or compressed, or a folder of such files.
    `limits`: how much is read at most; None takes the defaults and `PAMER_LAB_MAX_FILE_MB`.
    """
    found: list[Trace] = []
    for item in iter_traces([path], limits):
        if isinstance(item, Rejection):
            raise InputError(item.reason, path=item.path, where=item.where)
        found.append(item)
    return found


def read_all(paths: Iterable[str | Path], limits: ReadLimits | None = None) -> Reading:
    """All traces of several files and folders, with what was refused and why."""
    reading = Reading()
    for item in iter_traces(paths, limits):
        reading.add(item)
    return reading


def iter_traces(
    paths: Iterable[str | Path], limits: ReadLimits | None = None, *, roots: Sequence[Path] = ()
) -> Iterator[Trace | Rejection]:
    """Traces and rejections one by one, so that many files need not be in memory together.

    With `roots`, only files below one of them are read. A folder is its own root: a link that leads out of it is refused.
    """
    limits = limits or ReadLimits.from_environment()
    for given in paths:
        if not str(given).strip():
            yield Rejection("", "", "an empty path names no file; name a file or folder")
            continue
        try:
            path = below(Path(given), roots) if roots else Path(given)
            if not path.exists():
                yield Rejection(shown_name(str(given)), "", "does not exist")
                continue
            sources = list(islice(trace_sources(path, tuple(read_suffixes())), limits.max_archive_members + 1))
        except InputError as error:
            yield Rejection(shown_name(str(given)), "", error.reason)
            continue
        except OSError as error:
            yield Rejection(shown_name(str(given)), "", f"cannot be read ({error.strerror or error})")
            continue
        if len(sources) > limits.max_archive_members:
            yield Rejection(str(given), "", f"holds more than {limits.max_archive_members:,} files; import its folders one by one")
            continue
        if not sources:
            yield Rejection(str(given), "", f"{NO_TRACES} (it looks for {' '.join(read_suffixes())})")
        for source in sources:
            try:
                document = load_document(source, limits, roots=roots or ((path,) if path.is_dir() else ()))
            except InputError as error:
                yield Rejection(error.path or str(source), error.where, error.reason)
                continue
            yield from _rewarded(traces_of(document, limits), source, roots)


def _rewarded(items: Iterator[Trace | Rejection], path: Path, roots: Sequence[Path]) -> Iterator[Trace | Rejection]:
    """The first trace of a file gets the reward that its trial's folder records, unless it has one."""
    for number, item in enumerate(items):
        if number == 0 and isinstance(item, Trace) and item.reward is None and (reward := reward_beside(path, roots)) is not None:
            item = structs.replace(item, reward=reward)
        yield item


def read_bytes(data: bytes, name: str, limits: ReadLimits | None = None) -> Reading:
    """Traces of an upload; `name` is only shown, never used as a path."""
    reading = Reading()
    name, limits = shown_name(name), limits or ReadLimits.from_environment()
    try:
        document = parse_document(data, limits, name=name)
    except InputError as error:
        reading.add(Rejection(name, error.where, error.reason))
        return reading
    with uncollected():  # all traces are kept, so collecting garbage between them gains nothing
        for item in traces_of(document, limits):
            reading.add(item)
    return reading


def read_files(files: Iterable[tuple[str, bytes]], limits: ReadLimits | None = None) -> Iterator[Trace | Rejection]:
    """Traces of several uploads; event files and other pieces of conversations that share a folder in their names are one source."""
    limits = limits or ReadLimits.from_environment()
    folders: dict[str, list[tuple[str, bytes]]] = {}
    held: dict[str, bytes] = {}
    for name, data in files:
        folder, _, last = name.rpartition("/")
        if EVENT_FILE.match(last):
            folders.setdefault(folder, []).append((last, data))
        elif may_be_piece(name):
            held[name] = data
        else:
            yield from _read_upload(name, data, limits)
    events = set(folders)
    joined = group_names(held)
    for name, folder in joined.items():
        folders.setdefault(folder, []).append((name.removeprefix(folder), held[name]))
    for name, data in held.items():
        if name not in joined and not is_described(name, folders):
            yield from _read_upload(name, data, limits)
    for folder, members in folders.items():
        members = sorted(members, key=event_number) if folder in events else members
        try:
            document = parse_events(members, limits, name=shown_name(folder.rstrip("/") or members[0][0]))
        except InputError as error:
            yield Rejection(error.path, error.where, error.reason)
            continue
        yield from traces_of(document)


def _read_upload(name: str, data: bytes, limits: ReadLimits) -> Iterator[Trace | Rejection]:
    reading = read_bytes(data, name, limits)
    yield from reading.traces
    yield from reading.rejected


def traces_of(document: Document, limits: ReadLimits | None = None) -> Iterator[Trace | Rejection]:
    """The traces of a parsed document, read by the first format that finds something in it; for a zip, those of each file."""
    if document.members:
        for member in member_documents(document, limits or ReadLimits.from_environment()):
            if isinstance(member, InputError):
                yield Rejection(member.path, member.where, member.reason)
            else:
                yield from traces_of(member)
        return
    found = _traces_of(document)
    while True:
        with uncollected():
            item = next(found, None)
        if item is None:
            return
        yield item


def _traces_of(document: Document) -> Iterator[Trace | Rejection]:
    tried: list[tuple[str, str]] = []
    first: tuple[list[Draft], Rejection | None] | None = None
    for candidate in claimants(document):
        drafts = candidate.read(document)
        opened, fault, reason = _open(document, drafts)
        if not reason:
            yield from _finished(document, chain(opened, drafts), fault, tried)
            return
        tried.append((candidate.NAME, reason))
        first = first or (opened, fault)
    if first is None:
        notes = "".join(f"; it {text}" for _, text in document.notes) if document.kind == "sqlite" else ""
        yield Rejection(document.path, "", f"{NO_MESSAGES} in a known format ({_look(document)}){LISTED}{notes}")
        return
    # No reader found anything that the agent said, so the most specific reader's result is returned.
    found = list(_finished(document, *first, [])) or [Rejection(document.path, "", NO_MESSAGES)]
    yield from (replace(item, tried=tuple(tried)) if isinstance(item, Rejection) else item for item in found)


def _open(document: Document, drafts: Iterator[Draft]) -> tuple[list[Draft], Rejection | None, str]:
    """(the drafts up to the first that can be used, a fault that ended the reading, why the reader gives up)."""
    opened: list[Draft] = []
    try:
        for draft in drafts:
            opened.append(draft)
            if not draft.let_go:
                return opened, None, ""
    except NotThisFormat as error:
        return opened, Rejection(document.path, error.where, error.reason), error.reason
    except InputError as error:
        return opened, Rejection(document.path, error.where, error.reason), ""
    except SHAPE_ERRORS as error:
        reason = shape_fault(error).reason
        return opened, Rejection(document.path, f"trace {len(opened)}", reason), reason
    return opened, None, opened[0].let_go if opened else "no messages were found"


def _finished(
    document: Document, drafts: Iterable[Draft], fault: Rejection | None, tried: list[tuple[str, str]]
) -> Iterator[Trace | Rejection]:
    """The drafts as traces, each numbered by its place in the file; `fault`, if any, comes last."""
    index = 0
    try:
        for draft in drafts:
            trace_id = "t-" + hashlib.sha256(f"{document.sha256}/{index}".encode()).hexdigest()[:16]
            source = Source(document.path, index, document.sha256)
            index += 1
            try:
                for where, text in document.notes if index == 1 else ():
                    draft.warnings.insert(0, Warning(where, text))
                if tried and index == 1:
                    draft.warnings.insert(0, Warning("file", _tried_in_words(tried).strip(), "tried"))
                draft.labels += missing_labels(draft.labels, draft.messages)
                document.budget.take(draft.size(), len(draft.messages))
                yield draft.finish(source, trace_id)
            except FormatError as error:
                yield Rejection(document.path, error.where, error.reason)
    except InputError as error:
        yield Rejection(document.path, error.where, error.reason)
        return
    except SHAPE_ERRORS as error:
        yield Rejection(document.path, f"trace {index}", shape_fault(error).reason)
        return
    if fault:
        yield fault


def _tried_in_words(tried: Sequence[tuple[str, str]]) -> str:
    return " Also tried: " + "; ".join(f"{name} ({reason})" for name, reason in tried) if tried else ""


def _look(document: Document) -> str:
    """What a file of no known format looks like, so that its user can identify it."""
    value = document.root
    kind = "a list" if isinstance(value, list) else ""
    value = value[0] if isinstance(value, list) and value else value
    if document.kind == "sqlite":
        return f"SQLite with the tables {', '.join(list(value)[:12])}" if value else "SQLite without tables"
    if isinstance(value, dict):
        fields = ", ".join(str(key)[:40] for key in list(value)[:8])
        kind = f"{kind or 'an object'} with the fields {fields}" if not kind else f"a list of objects with the fields {fields}"
    return f"{'lines, the first ' if document.kind == 'jsonl' else ''}{kind or type(value).__name__}"
