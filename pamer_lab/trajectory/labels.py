"""Labels that a source implies: from recorded memory operations, and from a side file.

A call of a `manage_context`-like tool labels compression at its decision point, a `query_memory`-like one recall; a side file names
traces by id, question or number. Only positive points need a label, except from a model or `hindsight`, which label every point that
they judge. Invariant: a label points at an existing decision point, and no two labels of a trace share point, target and origin.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

import msgspec

from pamer_lab.config import ReadLimits
from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.trajectory.document import load_document
from pamer_lab.trajectory.values import Label, Message, Target, Trace

OPERATION = "memory-operation"
SIDE_FILE = "side-file"
HINDSIGHT = "hindsight"
"""Labels that a rule derives from what later actions used (`runs/hindsight.py`), at every point that it can judge. Parameters other
than its defaults are appended: `hindsight:horizon=8`."""
POSITIVES_ENOUGH = frozenset({"native", "generator", OPERATION, SIDE_FILE})
"""Origins that may label positive points only; every other origin, a model's name or `hindsight`, labels negatives too."""

INFORMED_MARK = "+action"
"""Ends the origin of labels whose annotator saw the action that came next."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SHRINK = {"manage", "compress", "compact", "summarize", "summarise", "condense", "prune", "fold", "trim", "offload", "collapse"}
_CONTEXT = {"context", "history", "conversation", "messages", "trajectory", "window"}
_COMPRESSION_NAMES = {"compact", "compress", "condense", "condensation", "compaction"}
_ASK = {"query", "recall", "retrieve", "search", "restore", "fetch", "lookup", "load"}
_STRONG_ASK = {"query", "recall", "retrieve", "restore"}
_MEMORY = {"memory", "memories"}
_RECALL_NAMES = {"recall", "remember", "glimpse", "conversation_search", "archival_memory_search", "get_memories"}


def by_hindsight(label: Label) -> bool:
    """Whether a label was derived from later actions, with whatever parameters."""
    return label.origin.partition(":")[0] == HINDSIGHT


def _split(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(name))


def is_compression(name: str) -> bool:
    """Whether a tool of this name shrinks the agent's own context."""
    words = _split(name)
    return name.lower() in _COMPRESSION_NAMES or bool(words & _SHRINK and words & _CONTEXT)


def is_recall(name: str) -> bool:
    """Whether a tool of this name queries the agent's own memory; plain `search` and `get_context` do not."""
    words = _split(name)
    return name.lower() in _RECALL_NAMES or bool(words & _ASK and words & _MEMORY) or bool(words & _STRONG_ASK and words & _CONTEXT)


def operation_labels(messages: Iterable[Message]) -> list[Label]:
    """Labels from the memory tools an agent called; each turn is marked once per target."""
    known: dict[str, Target | None] = {}
    found: dict[tuple[int, Target], Label] = {}
    turn = -1
    for message in messages:
        if message.role != "assistant":
            continue
        turn += 1
        for call in message.tool_calls:
            if call.name not in known:
                known[call.name] = _target(call.name)
            target = known[call.name]
            if target:
                found.setdefault((turn, target), Label(turn, target, origin=OPERATION))
    return list(found.values())


def missing_labels(labels: Iterable[Label], messages: Iterable[Message]) -> list[Label]:
    """Labels from memory operations, for the targets that the source has not labelled itself."""
    labelled = {label.target for label in labels}
    return [label for label in operation_labels(messages) if label.target not in labelled]


def _target(name: str) -> Target | None:
    if is_compression(name):
        return "compression"
    return "recall" if is_recall(name) else None


class SideEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels of one trace; exactly one of the three names must be given."""

    labels: tuple[Label, ...]
    trace_id: str = ""
    """Our id of the trace, as `import` prints it."""
    question_id: str = ""
    """All traces of this question."""
    index: int = -1
    """Number of the trace within its file, 0-based."""
    file: str = ""
    """Name of the trace file, without its folder: narrows `question_id` or `index` down if several files are imported."""


class SideFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of labels that belongs to a trace file."""

    pamer_lab_labels: int
    """Version of this layout; 1."""
    traces: tuple[SideEntry, ...]


def load_side_file(path: Path, limits: ReadLimits | None = None) -> SideFile:
    """Read and check a side file; every fault names the file and the place."""
    document = load_document(path, limits or ReadLimits.from_environment())
    try:
        side = msgspec.convert(document.root, SideFile)
    except msgspec.ValidationError as error:
        raise InputError(f"is not a label file: {error}; docs/trace-format.md shows one", path=str(path)) from error
    if side.pamer_lab_labels != 1:
        raise InputError(f"is version {side.pamer_lab_labels} of the label file; this program reads version 1", path=str(path))
    for number, entry in enumerate(side.traces):
        if sum((bool(entry.trace_id), bool(entry.question_id), entry.index >= 0)) != 1:
            raise InputError(
                "must name its trace by exactly one of trace_id, question_id and index", path=str(path), where=f"traces[{number}]"
            )
    return side


class SideLabels:
    """Adds the labels of a side file to traces, and remembers which entries matched no trace."""

    def __init__(self, path: Path, limits: ReadLimits | None = None) -> None:
        self.path = str(path)
        self.side = load_side_file(path, limits)
        self.unused = set(range(len(self.side.traces)))

    def apply(self, trace: Trace) -> Trace:
        """The trace with the labels that the side file has for it; others pass unchanged."""
        added: list[Label] = []
        for number, entry in enumerate(self.side.traces):
            if not _names(entry, trace):
                continue
            self.unused.discard(number)
            for label in entry.labels:
                if not 0 <= label.t < trace.turns or any(not 0 <= step < label.t for step in label.steps):
                    points = counted(trace.turns, "point")
                    reason = f"labels point {label.t} with steps {list(label.steps)}; the trace {trace.trace_id} has {points}"
                    raise InputError(reason, path=self.path, where=f"traces[{number}]")
                added.append(msgspec.structs.replace(label, origin=SIDE_FILE))
        return msgspec.structs.replace(trace, labels=merge(trace.labels, added)) if added else trace


def _names(entry: SideEntry, trace: Trace) -> bool:
    index, path = (trace.source.index, trace.source.path) if trace.source else (0, "")
    if entry.file and entry.file != PurePath(path).name:
        return False
    return entry.trace_id == trace.trace_id or entry.question_id == trace.question_id or entry.index == index


def merge(first: Iterable[Label], second: Iterable[Label]) -> tuple[Label, ...]:
    """Both without duplicates, of which the first is kept, ordered by decision point."""
    found: dict[tuple[Any, ...], Label] = {}
    for label in (*first, *second):
        found.setdefault((label.t, label.target, label.origin), label)
    return tuple(sorted(found.values(), key=lambda label: (label.t, label.target, label.origin)))
