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
    """What one import came to."""

    traces: list[dict[str, Any]] = field(default_factory=list)
    """Summary rows, each with its `warnings` as a list of place and text."""
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
        raise InputError("no folder may be read from a page")
    items = iter_traces(paths, roots=roots or ())
    return _store(_labelled(items, labels) if labels else items, workspace, demo=demo, on_reject=on_reject, tokens=tokens)


def _labelled(items: Iterable[Trace | Rejection], path: Path) -> Iterator[Trace | Rejection]:
    side = SideLabels(path)
    for item in items:
        yield side.apply(item) if isinstance(item, Trace) else item
    for number in sorted(side.unused):
        yield Rejection(str(path), f"traces[{number}]", "names none of the imported traces")


def import_uploads(files: Iterable[tuple[str, bytes]], workspace: Workspace) -> Imported:
    """Read files that are already in memory; numbered event files of one folder are one source."""
    refuse_in_reviewer_mode("Importing traces", workspace.path)
    return _store(read_files(files), workspace)


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


def _store(
    items: Iterator[Trace | Rejection],
    workspace: Workspace,
    *,
    demo: bool = False,
    on_reject: Callable[[Rejection], None] | None = None,
    tokens: MessageTokens | None = None,
) -> Imported:
    tokens = tokens or MessageTokens(embedded_counter())
    before = {row["trace_id"] for row in workspace.trace_rows()}
    result = Imported()
    batch: list[Trace] = []

    def flush() -> None:
        for trace, row in zip(batch, workspace.add_traces(batch, tokens, demo=demo), strict=True):
            result.known += trace.trace_id in before
            result.traces.append(row | {"warnings": [{"where": item.where, "text": item.text} for item in trace.warnings]})
        batch.clear()

    for item in items:
        if isinstance(item, Rejection):
            result.rejected.append(item)
            if on_reject:
                on_reject(item)
            continue
        batch.append(item)
        if len(batch) >= BATCH:
            flush()
    flush()
    return result
