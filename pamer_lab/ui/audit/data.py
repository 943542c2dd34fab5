"""What the audit page reads, cached and bounded: selections, reviews, one case with its evidence, the check of the store.

Caches are keyed by table versions, so that a new review or replay is seen at once. Sessions share the values and never change them.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from pamer_lab.aside import SCAN_SECONDS, ask
from pamer_lab.audit import AuditStore, Review, ReviewStore
from pamer_lab.audit.exchange import import_bytes
from pamer_lab.audit.provenance import Provenance, Step
from pamer_lab.audit.queue import Entry, entries
from pamer_lab.audit.tables import REVIEWS, SELECTIONS
from pamer_lab.errors import InputError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import Findings, check
from pamer_lab.memory.schema import BLOCKS, MEMORIES
from pamer_lab.opening import read_file
from pamer_lab.redaction import Finding, Redaction
from pamer_lab.runs.values import RunInfo
from pamer_lab.storage import TableSpec
from pamer_lab.ui.shared.loaders import table_version, workspace
from pamer_lab.ui.shared.runs import run_store, version
from pamer_lab.workspace import TRACES

AT_ONCE = 1_000_000
"""Uploads of up to this many bytes are read in the page's process."""
MOST_BYTES = 1_000_000_000
"""Maximum size of an export."""
TABLES: tuple[TableSpec, ...] = (MEMORIES, BLOCKS, SELECTIONS, REVIEWS)


def versions() -> dict[str, int]:
    """Each table's newest version; 0 if it does not exist yet."""
    return {spec.name: table_version(spec)[1] for spec in TABLES}


def _key(*specs: TableSpec) -> tuple[int, ...]:
    """Changes whenever one of these tables does."""
    return tuple(number for spec in specs for number in table_version(spec))


@st.cache_resource(max_entries=4, show_spinner=False)
def _rows(path: str, at: tuple[int, ...]) -> list[dict[str, Any]]:
    return AuditStore(workspace().database).rows()


@st.cache_resource(max_entries=4, show_spinner=False)
def _reviews(path: str, at: tuple[int, ...]) -> list[Review]:
    return ReviewStore(workspace().database).current()


def selection_rows() -> list[dict[str, Any]]:
    """Every selection, without its long texts."""
    return _rows(str(workspace().path), _key(SELECTIONS)) if any(_key(SELECTIONS)) else []


def reviews() -> list[Review]:
    """The newest revision of every review."""
    return _reviews(str(workspace().path), _key(REVIEWS)) if any(_key(REVIEWS)) else []


@st.cache_data(max_entries=4, show_spinner="Scanning for secrets…")
def _exported_findings(path: str, at: tuple[int, ...], redact: Redaction) -> list[Finding]:
    return exported(".jsonl", redact)[1]


def exported(ending: str, redact: Redaction) -> tuple[bytes, list[Finding]]:
    """Selections and reviews as a file, and what the scan for secrets found; made in a separate process, since the texts are untrusted."""
    with TemporaryDirectory(prefix="pamer-lab-audit-") as folder:
        asked = [str(workspace().path.absolute()), ending, redact, folder]
        found = ask("audit export", asked, list[Finding], seconds=SCAN_SECONDS, what="Preparing the export")
        return read_file(Path(folder) / f"audit{ending}", MOST_BYTES), found


def imported(name: str, body: bytes) -> dict[str, int]:
    """How many selections and reviews of an upload were new; a large one is read in a separate process."""
    if len(body) <= AT_ONCE:
        return import_bytes(workspace().database, Path(name), body)
    with TemporaryDirectory(prefix="pamer-lab-audit-") as folder:
        file = Path(folder) / "upload"
        file.write_bytes(body)
        asked = [str(workspace().path.absolute()), name, str(file)]
        return ask("audit import", asked, dict[str, int], seconds=SCAN_SECONDS, what="Importing the audit")


def exported_findings(redact: Redaction) -> list[Finding]:
    """What the scan for secrets finds in everything that an export would contain."""
    at = _key(SELECTIONS, REVIEWS)
    return _exported_findings(str(workspace().path), at, redact) if any(at) else []


@st.cache_resource(max_entries=4, show_spinner=False)
def _queue(path: str, at: tuple[int, ...]) -> list[Entry]:
    return entries(selection_rows(), reviews())


def queue() -> list[Entry]:
    """All selections with the verdicts on each."""
    return _queue(str(workspace().path), _key(SELECTIONS, REVIEWS))


@st.cache_resource(max_entries=32, show_spinner=False)
def _full(path: str, at: tuple[int, ...], audit_id: str) -> dict[str, Any] | None:
    return AuditStore(workspace().database).row(audit_id)


def full_row(audit_id: str) -> dict[str, Any] | None:
    """One selection with its query, answer and candidates."""
    return _full(str(workspace().path), _key(SELECTIONS), audit_id)


@st.cache_resource(max_entries=8, show_spinner=False)
def _provenance(path: str, at: tuple[int, ...], session_id: str, trace_id: str) -> Provenance:
    lab = workspace()
    store = MemoryStore(lab.database)
    try:
        trace = lab.trace(trace_id).trace if trace_id else None
    except InputError:
        trace = None
    return Provenance(store.load(session_id), store, trace)


def provenance(session_id: str, trace_id: str) -> Provenance:
    """Looks up steps of a session; without the trace, the comparison with the upload is skipped."""
    return _provenance(str(workspace().path), _key(MEMORIES, BLOCKS, TRACES), session_id, trace_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _step(path: str, at: tuple[int, ...], session_id: str, trace_id: str, number: int) -> Step:
    return provenance(session_id, trace_id).step(number)


def step_of(session_id: str, trace_id: str, number: int) -> Step:
    """One step with its text and the outcome of its check; read again only after a table changed."""
    return _step(str(workspace().path), _key(MEMORIES, BLOCKS, TRACES), session_id, trace_id, number)


@st.cache_data(max_entries=2, show_spinner="Reading every memory and every raw block…")
def _findings(path: str, at: tuple[int, ...]) -> Findings:
    return check(workspace().database)


def findings() -> Findings:
    """The store's own check; repeated only after a table changed."""
    return _findings(str(workspace().path), _key(MEMORIES, BLOCKS))


def heads_of(rows: Sequence[dict[str, Any]]) -> dict[str, RunInfo]:
    """The runs that these selections belong to, if they still exist."""
    names = tuple(sorted({str(row["run_id"]) for row in rows if row["run_id"]}))
    return _run_heads(str(workspace().path), version(), names) if names else {}


@st.cache_resource(max_entries=4, show_spinner=False)
def _run_heads(path: str, at: tuple[int, int], names: tuple[str, ...]) -> dict[str, RunInfo]:
    return {head.run_id: head for head in run_store().heads(run_ids=names)}
