"""The workspace folder: one place for traces, features, memories, runs, studies and reviews; defines the tables of traces and runs.

Knows where things are and how traces are kept; each other room keeps its own tables through `Workspace.database`.
On disk: `lance/` (a LanceDB database) and a few files, such as heads, profiles and `config.toml`; deleting the folder forgets everything.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pyarrow as pa

from pamer_lab.blocks import MessageTokens, context_before, cut
from pamer_lab.config import address_of, default_workspace, local_folder
from pamer_lab.errors import InputError, StorageError
from pamer_lab.storage import Database, TableSpec, equals, in_parts, is_in
from pamer_lab.storage.leases import lease
from pamer_lab.trajectory.labels import by_hindsight
from pamer_lab.trajectory.values import Label, Trace

if TYPE_CHECKING:
    import polars as pl

TRACES = TableSpec(
    name="traces",
    key=("trace_id",),
    indexed=("trace_id",),
    schema=pa.schema(
        [
            ("trace_id", pa.string()),
            ("question_id", pa.string()),
            ("task_id", pa.string()),
            ("name", pa.string()),
            ("path", pa.string()),
            ("index", pa.int64()),
            ("format", pa.string()),
            ("model", pa.string()),
            ("messages", pa.int64()),
            ("turns", pa.int64()),
            ("blocks", pa.int64()),
            ("tool_calls", pa.int64()),
            ("tool_results", pa.int64()),
            ("prefix_messages", pa.int64()),
            ("tokens", pa.int64()),
            ("tokenizer", pa.string()),
            ("tokens_kind", pa.string()),
            ("message_tokens", pa.list_(pa.int32())),
            ("labels", pa.int64()),
            ("events", pa.int64()),
            ("warnings", pa.int64()),
            ("reward", pa.float64()),
            ("demo", pa.bool_()),
            ("body", pa.large_binary()),
        ]
    ),
)
SUMMARY_COLUMNS = [name for name in TRACES.schema.names if name not in ("body", "message_tokens")]
"""A trace without its text."""

TOTALS = tuple("main_input main_output aux_input aux_output total base_total peak_active cached_input uncached_input".split())
"""Totals that have a column of their own, so that tables across runs need no JSON."""
RUNS = TableSpec(
    name="replay_runs",
    key=("run_id",),
    indexed=("run_id", "trace_id"),
    schema=pa.schema(
        [
            *((name, pa.string()) for name in ("run_id", "trace_id", "question_id", "task_id", "policy", "profile", "status")),
            *((name, pa.int64()) for name in ("turns", *TOTALS)),
            ("reduction_pct", pa.float64()),
            ("started", pa.string()),
            ("demo", pa.bool_()),
            ("head", pa.large_binary()),
        ]
    ),
)
RUN_COLUMNS = [name for name in RUNS.schema.names if name != "head"]
"""A run without its settings and turns."""


@dataclass(frozen=True)
class StoredTrace:
    """A trace as the workspace keeps it, with its measured counts."""

    trace: Trace
    row: dict[str, Any]
    message_tokens: tuple[int, ...]

    @property
    def tools_tokens(self) -> int:
        """Tokens of the tool descriptions."""
        return int(self.row["tokens"]) - sum(self.message_tokens)


class _Labelled(msgspec.Struct):
    """Only the labels of a stored trace."""

    labels: tuple[Label, ...] = ()


@dataclass(frozen=True)
class TraceSize:
    """What an estimate needs to know of a trace."""

    turns: int
    head_tokens: int
    """Tool descriptions and prefix, which every request begins with."""
    later_tokens: int
    """All blocks together."""


class Workspace:
    """A workspace folder: traces, runs and everything computed from them.

    `path`: the folder, or an address such as `s3://bucket/workspace` (docs/scale.md).
    None takes `PAMER_LAB_HOME`, or else `.pamer-lab` in the current folder. Nothing is created before the first write.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = local_folder(path) if path is not None else default_workspace()
        self.remote = address_of(self.path)
        """The object store's address; empty for a folder."""
        try:
            wrong = self.path.exists() and not self.path.is_dir()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"cannot be a workspace ({reason}); choose another folder", path=str(self.path)[:200]) from error
        if wrong:
            raise InputError("is a file, not a workspace folder; choose another with --workspace or PAMER_LAB_HOME", path=str(self.path))

    @property
    def address(self) -> str:
        """What another process or machine needs to open the same workspace."""
        return self.remote or str(self.path.absolute())

    @cached_property
    def database(self) -> Database:
        return Database(f"{self.remote}/lance" if self.remote else self.path / "lance")

    def table_version(self, spec: TableSpec) -> tuple[int, int]:
        """Changes whenever a table does, also when the folder was deleted and created again; zeros if there is no such table."""
        folder = self.path / "lance"
        if (not self.remote and not folder.exists()) or not self.database.exists(spec):
            return (0, 0)
        return (0 if self.remote else folder.stat().st_ctime_ns, self.database.version(spec))

    def add_traces(self, traces: Iterable[Trace], tokens: MessageTokens, *, demo: bool = False) -> list[dict[str, Any]]:
        """Store traces in one commit and return their summary rows; a known trace replaces its row."""
        rows = [trace_row(trace, tokens, demo=demo) for trace in self._with_kept_labels(deque(traces))]
        if rows:
            self.database.upsert(TRACES, rows)
            self.database.tidy(TRACES)
        return [{key: row[key] for key in SUMMARY_COLUMNS} for row in rows]

    def _with_kept_labels(self, traces: deque[Trace]) -> Iterable[Trace]:
        """The traces with the hindsight labels that the workspace has for them: no file holds those, and an import must not drop them.

        Takes them out one by one, so that each is in memory only until its row is made."""
        known = self.labels(trace.trace_id for trace in traces) if self.path.exists() and self.database.exists(TRACES) else {}
        while traces:
            trace = traces.popleft()
            new = not any(map(by_hindsight, trace.labels))
            kept = tuple(filter(by_hindsight, known.get(trace.trace_id, ()))) if new else ()
            yield msgspec.structs.replace(trace, labels=(*trace.labels, *kept)) if kept else trace

    def relabel(self, traces: Iterable[Trace]) -> None:
        """Store new labels for traces of the workspace; nothing else in them may differ."""
        rows = []
        for trace in traces:
            row = self.database.rows(TRACES, where=equals("trace_id", trace.trace_id))[0]
            rows.append(row | {"labels": len(trace.labels), "body": msgspec.msgpack.encode(trace)})
        if rows:
            self.database.upsert(TRACES, rows)

    def trace_rows(self, where: str = "") -> list[dict[str, Any]]:
        """Summary rows of all traces, or of those that fit a filter, sorted by name."""
        if not self.path.exists():
            return []
        rows = self.database.rows(TRACES, where=where, columns=SUMMARY_COLUMNS)
        return sorted(rows, key=lambda row: (row["name"], row["index"]))

    def rows_of(self, trace_ids: Iterable[str]) -> list[dict[str, Any]]:
        """Summary rows of those of these traces that are in the workspace."""
        if not self.path.exists():
            return []
        parts = in_parts(trace_ids)
        return [row for part in parts for row in self.database.rows(TRACES, where=is_in("trace_id", part), columns=SUMMARY_COLUMNS)]

    def trace_page(self, start: int, count: int) -> list[dict[str, Any]]:
        """`count` summary rows from `start` on, in the order in which they were stored; nothing else is read."""
        if not self.database.exists(TRACES):
            return []
        return self.database.page(TRACES, SUMMARY_COLUMNS, start, count)

    def index(self) -> None:
        """Index the columns by which traces and runs are looked up; happens automatically from some ten thousand rows on."""
        for spec in (TRACES, RUNS):
            if self.database.exists(spec):
                self.database.index(spec, spec.indexed)

    def traces(self) -> "pl.DataFrame":
        """All traces as a frame, one row each and without their text, sorted by file name; the columns are in `docs/python.md`."""
        import polars as pl

        return pl.DataFrame(self._frame(TRACES, SUMMARY_COLUMNS)).sort("name", "index")

    def runs(self) -> "pl.DataFrame":
        """All runs as a frame, one row each, oldest first; the columns are in `docs/python.md`.

        Unfinished runs are listed too, with their `status`; their totals are null.
        """
        import polars as pl

        return pl.DataFrame(self._frame(RUNS, RUN_COLUMNS)).sort("started", "run_id")

    def _frame(self, spec: TableSpec, columns: list[str]) -> pa.Table:
        if not self.path.exists():
            return spec.schema.empty_table().select(columns)
        return self.database.arrow(spec, columns=columns)

    def trace(self, trace_id: str) -> StoredTrace:
        """One trace with its token counts; the error for an unknown id says what to do."""
        found = self.database.rows(TRACES, where=equals("trace_id", trace_id)) if self.path.exists() else []
        if not found:
            raise InputError(f"trace {trace_id!r} is not in the workspace {self.remote or self.path}; import its file first")
        row = found[0]
        trace = msgspec.msgpack.decode(row.pop("body"), type=Trace)
        return StoredTrace(trace, row, tuple(row.pop("message_tokens")))

    def trace_sizes(self, trace_ids: Iterable[str]) -> dict[str, TraceSize]:
        """Sizes of traces by id, from their stored counts."""
        columns = ["trace_id", "turns", "tokens", "prefix_messages", "message_tokens"]
        found = {}
        rows = (row for part in in_parts(trace_ids) for row in self.database.rows(TRACES, where=is_in("trace_id", part), columns=columns))
        for row in rows:
            later = sum(row["message_tokens"][row["prefix_messages"] :])
            found[row["trace_id"]] = TraceSize(row["turns"], row["tokens"] - later, later)
        return found

    def contexts_before(self, trace_ids: Iterable[str]) -> dict[str, list[int]]:
        """Tokens before each turn, by trace id."""
        columns = ["trace_id", "message_tokens", "tokens", "body"]
        found = {}
        rows = (row for part in in_parts(trace_ids) for row in self.database.rows(TRACES, where=is_in("trace_id", part), columns=columns))
        for row in rows:
            pieces = cut(msgspec.msgpack.decode(row["body"], type=Trace).messages)
            counts = row["message_tokens"]
            found[row["trace_id"]] = list(context_before(pieces, counts, row["tokens"] - sum(counts)))
        return found

    def labels(self, trace_ids: Iterable[str] | None = None) -> dict[str, tuple[Label, ...]]:
        """Labels by trace, of all labelled traces unless some are named; nothing else of them is decoded."""
        if trace_ids is None:
            trace_ids = [row["trace_id"] for row in self.database.rows(TRACES, where="labels > 0", columns=["trace_id"])]
        wheres = (f"labels > 0 AND {is_in('trace_id', part)}" for part in in_parts(trace_ids))
        rows = (row for where in wheres for row in self.database.rows(TRACES, where=where, columns=["trace_id", "body"]))
        return {row["trace_id"]: msgspec.msgpack.decode(row["body"], type=_Labelled).labels for row in rows}

    def remove_trace(self, trace_id: str) -> None:
        self.database.delete(TRACES, equals("trace_id", trace_id))


def may_write(workspace: Workspace) -> bool:
    """Whether the credentials for a workspace in an object store allow writing, found by taking and giving back a lease."""
    try:
        with lease(workspace.database, "may-write", uuid4().hex):
            return True
    except StorageError:
        return False


def trace_row(trace: Trace, tokens: MessageTokens, *, demo: bool = False) -> dict[str, Any]:
    """The stored form of a trace: its counts, and the trace itself as MessagePack."""
    counts: Sequence[int] = tokens.counts(trace.messages)
    pieces = cut(trace.messages)
    blocks, prefix_end = len(pieces.blocks), pieces.prefix_end
    del pieces  # a trace of tiny messages has as many blocks as messages
    source = trace.source
    path = source.path if source else ""
    return {
        "trace_id": trace.trace_id,
        "question_id": trace.question_id,
        "task_id": trace.task_id,
        "name": Path(path).name,
        "path": path,
        "index": source.index if source else 0,
        "format": trace.format,
        "model": trace.model,
        "messages": len(trace.messages),
        "turns": trace.turns,
        "blocks": blocks,
        "tool_calls": sum(len(message.tool_calls) for message in trace.messages),
        "tool_results": trace.results,
        "prefix_messages": prefix_end,
        "tokens": sum(counts) + tokens.tools(trace.tools),
        "tokenizer": tokens.counter.name,
        "tokens_kind": tokens.counter.kind,
        "message_tokens": counts,
        "labels": len(trace.labels),
        "events": len(trace.events),
        "warnings": len(trace.warnings),
        "reward": trace.reward,
        "demo": demo,
        "body": msgspec.msgpack.encode(trace),
    }
