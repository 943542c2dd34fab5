"""Importing traces into the workspace, shared by the `import` command and the pages.

Knows uploads, paths and the demo folder; readers know the formats, the workspace stores traces.
Invariant: a bad file never stops the others, an upload's name is only displayed, and nothing is imported twice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.config import ReadLimits, app_folder
from pamer_lab.errors import InputError
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.trajectory import Rejection, Trace, iter_traces, read_files
from pamer_lab.trajectory.labels import SideLabels
from pamer_lab.trajectory.unpacking import mb
from pamer_lab.workspace.store import Workspace

BATCH = 200
"""Traces stored per commit."""

DEMO_FOLDER = app_folder() / "sample_traces" / "demo"
"""The traces that come with the project."""


@dataclass
class Imported:
    """The result of one import."""

    traces: list[dict[str, Any]] = field(default_factory=list)
    """Summary rows, each with its `warnings` as a list of place, text and kind, the `confidence` in its format, and what was `not_read` of
    it (lines and parts that no rule reads, and what came out empty)."""
    rejected: list[Rejection] = field(default_factory=list)
    known: int = 0
    """How many of the traces were in the workspace before."""


def import_paths(
    paths: Iterable[str | Path],
    workspace: Workspace,
    *,
    demo: bool = False,
    labels: Path | None = None,
    on_reject: Callable[[Rejection], None] | None = None,
    tokens: MessageTokens | None = None,
    roots: Sequence[Path] | None = None,
) -> Imported:
    """Read files and folders of this machine; `labels` is a side file whose labels the traces get.

    Counts are made with `tokens`; None: with the embedded tokenizer. With `roots` only what lies below one of them is read, without
    following links out of it; an empty list allows nothing.
    """
    refuse_in_reviewer_mode("Reading a path", workspace.path)
    if roots is not None and not roots:
        raise InputError("pages may not read any folder")
    items = iter_traces(paths, roots=roots or ())
    return store_items(_labelled(items, labels) if labels else items, workspace, demo=demo, on_reject=on_reject, tokens=tokens)


def not_read(trace: Trace) -> list[str]:
    """What a trace lacks of its file: types of lines and parts with their counts, and what came out empty."""
    others = trace.meta.get("other_lines")
    kinds = [f"{kind} ({count:,})" for kind, count in others.items() if isinstance(count, int)] if isinstance(others, dict) else []
    return kinds + [warning.text for warning in trace.warnings if warning.kind == "empty"]


def files_of(result: Imported) -> list[dict[str, Any]]:
    """A summary of each file: format, confidence, traces, turns, calls, results, tokens, and what was not read."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in result.traces:
        groups.setdefault(row["path"] or row["name"], []).append(row)
    return [_file(path, rows) for path, rows in groups.items()]


def _file(path: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    lost = [text for row in rows for text in row["not_read"]]
    return {
        "path": path,
        "name": rows[0]["name"] if len(rows) == 1 else Path(path).name,
        "format": rows[0]["format"],
        "confidence": rows[0]["confidence"],
        "traces": len(rows),
        **{key: sum(row[key] for row in rows) for key in ("turns", "tool_calls", "tool_results", "tokens")},
        "not_read": lost,
        "warnings": sum(len(row["warnings"]) for row in rows),
    }


def _labelled(items: Iterable[Trace | Rejection], path: Path) -> Iterator[Trace | Rejection]:
    side = SideLabels(path)
    for item in items:
        yield side.apply(item) if isinstance(item, Trace) else item
    for number in sorted(side.unused):
        yield Rejection(str(path), f"traces[{number}]", "names none of the imported traces")


def import_uploads(files: Iterable[tuple[str, bytes]], workspace: Workspace) -> Imported:
    """Read files that are already in memory; numbered event files of one folder are one source."""
    refuse_in_reviewer_mode("Importing traces", workspace.path)
    return store_items(read_files(files), workspace)


def upload_fault(sizes: Sequence[int], limits: ReadLimits | None = None) -> str:
    """Why an upload with files of these sizes is rejected before any is read; empty if it is accepted."""
    limits = limits or ReadLimits.from_environment()
    if len(sizes) > limits.max_archive_members:
        return f"{len(sizes):,} files are more than the {limits.max_archive_members:,} of one upload; nothing was read"
    if sum(sizes) > limits.max_upload_bytes:
        return f"{mb(sum(sizes))} are more than the {mb(limits.max_upload_bytes)} of one upload; nothing was read"
    return ""


def import_demo(workspace: Workspace) -> Imported:
    """Read the demo traces, marked as such."""
    return import_paths([DEMO_FOLDER], workspace, demo=True)


def store_items(
    items: Iterator[Trace | Rejection],
    workspace: Workspace,
    *,
    demo: bool = False,
    on_reject: Callable[[Rejection], None] | None = None,
    tokens: MessageTokens | None = None,
) -> Imported:
    """Store traces as they come, in batches, and collect the rejections."""
    tokens = tokens or MessageTokens(embedded_counter())
    before = {row["trace_id"] for row in workspace.trace_rows()}
    result = Imported()
    batch: list[Trace] = []
    facts: list[dict[str, Any]] = []

    def drained() -> Iterator[Trace]:
        """The traces of the batch, which is emptied on the way, so that it does not keep them in memory."""
        while batch:
            trace = batch.pop(0)
            result.known += trace.trace_id in before
            facts.append(_facts(trace))
            yield trace

    def flush() -> None:
        rows = workspace.add_traces(drained(), tokens, demo=demo)
        result.traces.extend(row | fact for row, fact in zip(rows, facts, strict=True))
        facts.clear()

    def take(item: Trace | Rejection) -> None:
        if isinstance(item, Trace):
            batch.append(item)
            return
        result.rejected.append(item)
        if on_reject:
            on_reject(item)

    for item in items:
        take(item)
        del item
        if len(batch) >= BATCH:
            flush()
    flush()
    return result


def _facts(trace: Trace) -> dict[str, Any]:
    """What an import reports about a trace in addition to its stored row."""
    warnings = [{"where": item.where, "text": item.text, "kind": item.kind} for item in trace.warnings]
    return {"warnings": warnings, "confidence": trace.confidence, "not_read": not_read(trace)}
