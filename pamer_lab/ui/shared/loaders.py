"""What pages read, cached and bounded: the workspace, its table of traces, one trace, search hits.

Caches are keyed by the folder and the table's version, so that a new import is seen at once. Sessions share the values and never change
them.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from pamer_lab.config import default_workspace
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.samples import import_sample_runs
from pamer_lab.storage import TableSpec
from pamer_lab.trajectory.formats import formats
from pamer_lab.ui.shared.transcript import Hit, Transcript
from pamer_lab.workspace import TRACES, StoredTrace, Workspace
from pamer_lab.workspace.catalogue import Filters, Listed, listed
from pamer_lab.workspace.ingest import DEMO_FOLDER, Imported, import_demo

_FIRST = threading.Lock()
MOST_HITS = 5_000
"""Maximum search hits counted in one trace; beyond that, the page says `or more`."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _workspace(path: str) -> Workspace:
    return Workspace(path)


def workspace() -> Workspace:
    """The workspace all sessions of this server share."""
    return _workspace(str(default_workspace().absolute()))


def table_version(spec: TableSpec) -> tuple[int, int]:
    """Changes whenever a table does, even if the folder was deleted and created again."""
    return workspace().table_version(spec)


@st.cache_resource(max_entries=8, show_spinner=False)
def _listed(path: str, version: tuple[int, int], where: str) -> Listed:
    return listed(_workspace(path), where)


def catalogue(filters: Filters | None = None) -> Listed:
    """The traces that fit; if very many do, the most recently stored ones."""
    return _listed(str(workspace().path), table_version(TRACES), (filters or Filters()).where)


def trace_rows() -> Sequence[dict[str, Any]]:
    """Summary rows of all traces, or of the most recently stored ones if there are very many."""
    return catalogue().rows


def rows_named(trace_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Summary rows by trace id, listed or not; missing traces are left out."""
    wanted, known = dict.fromkeys(trace_ids), {row["trace_id"]: row for row in trace_rows()}
    missing = [name for name in wanted if name not in known]
    known |= {row["trace_id"]: row for row in workspace().rows_of(missing)} if missing and not catalogue().complete else {}
    return {name: known[name] for name in wanted if name in known}


def known_formats() -> list[str]:
    """Formats that traces here may have: those of the listed traces; if not all are listed, every format that can be read."""
    found = catalogue()
    return sorted({row["format"] for row in found.rows} | (set() if found.complete else {reader.NAME for reader in formats()}))


def rows_or_demo() -> tuple[Sequence[dict[str, Any]], Imported | None]:
    """All traces that are listed; an empty workspace imports the demo traces first and returns that import too."""
    rows = trace_rows()
    if rows or not DEMO_FOLDER.is_dir() or reviewer_mode():
        return rows, None
    with st.spinner("Reading the demo traces…"):
        return first_rows()


def first_rows() -> tuple[Sequence[dict[str, Any]], Imported | None]:
    """The same without a page; of several concurrent callers, one imports and the others wait for it."""
    with _FIRST:
        rows = trace_rows()
        if rows or not DEMO_FOLDER.is_dir() or reviewer_mode():
            return rows, None
        imported = import_demo(workspace())
        import_sample_runs(workspace())
        return trace_rows(), imported


@st.cache_resource(max_entries=4, show_spinner="Opening the trace…")
def _stored(path: str, version: tuple[int, int], trace_id: str) -> tuple[StoredTrace, Transcript]:
    stored = _workspace(path).trace(trace_id)
    return stored, Transcript(stored.trace, stored.message_tokens, stored.tools_tokens)


def stored_trace(trace_id: str) -> tuple[StoredTrace, Transcript]:
    """One trace, and the same trace as a transcript."""
    lab = workspace()
    return _stored(str(lab.path), table_version(TRACES), trace_id)


@st.cache_data(max_entries=32, show_spinner="Searching…")
def _hits(trace_id: str, words: str, _transcript: Transcript) -> list[Hit]:
    return _transcript.find(words, MOST_HITS)


def hits(transcript: Transcript, words: str) -> list[Hit]:
    """Where a text occurs in the trace."""
    return _hits(transcript.trace.trace_id, words, transcript) if words else []
