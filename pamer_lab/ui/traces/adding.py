"""Adding traces from files, a folder or a path, and the result of the import."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pamer_lab.figures.text import counted, short
from pamer_lab.redaction import sentence
from pamer_lab.runs.samples import import_sample_runs
from pamer_lab.trajectory import Rejection
from pamer_lab.trajectory.formats import read_suffixes
from pamer_lab.trajectory.unpacking import mb
from pamer_lab.ui.shared.gate import how_to_get_in, may_read_this_computer
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.picker import name_of
from pamer_lab.ui.shared.state import remember
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import rejections, table, table_height
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.ui.traces.home import open_links
from pamer_lab.ui.traces.sessions import TITLE, sessions_here
from pamer_lab.workspace.apart import import_files_apart, import_paths_apart
from pamer_lab.workspace.ingest import DEMO_FOLDER, Imported, files_of, import_demo, upload_fault
from pamer_lab.workspace.roots import readable_roots, roots_help

FORMATS = """PaMER Lab reads JSON and JSON Lines, also gzipped: OpenAI and Anthropic chats, SWE-agent, mini-SWE-agent, OpenHands, tau-bench,
Claude Code, Codex, Copilot, Cursor, Gemini, ATIF, Inspect logs, LangGraph and more. It detects the format from the content."""
WAYS = {"Files": "Files", "A folder": "Folder", "A path on the server": "Path on the server"}
"""Ways to add traces, with their labels."""
WAITING = "Waiting for other imports. Yours starts as soon as there is room."


def last_import() -> Imported | None:
    """The result of the last import of this session."""
    found: Imported | None = st.session_state.get("imported")
    return found


def add_traces(*, offer_demo: bool) -> None:
    """The drop zone, or a form for a path; the page shows the result of the import."""
    st.markdown("**Drop an agent trace:** Claude Code, Codex, OpenAI, SWE-agent, …")
    way = st.segmented_control(
        "Source", list(WAYS), default="Files", required=True, key="way", format_func=WAYS.__getitem__, label_visibility="collapsed"
    )
    if way == "A path on the server":
        _from_path()
    else:
        _from_upload(folder=way == "A folder")
    st.caption(f"{FORMATS} Your traces stay on this machine.")
    if st.toggle(TITLE, key="find-sessions", help=HINTS["sessions"]) and (done := sessions_here()):
        _imported(done[0], scanned=sentence(done[1].findings))
        st.rerun()
    if (
        offer_demo
        and DEMO_FOLDER.is_dir()
        and st.button("Load demo traces", key="load-demo", icon=":material/download:", help=HINTS["demo"])
    ):
        with st.spinner("Reading the demo traces…"):
            st.session_state["imported"] = import_demo(workspace())
            import_sample_runs(workspace())
        st.rerun()


def _from_upload(*, folder: bool) -> None:
    number = st.session_state.setdefault("uploads", 0)
    files = st.file_uploader(
        "A folder of traces, or an OpenHands folder of event files" if folder else "One or more trace files",
        type=[suffix[1:] for suffix in read_suffixes()] if folder else None,
        accept_multiple_files="directory" if folder else True,
        key=f"upload-{number}",
    )
    if not files:
        return
    fault = upload_fault([file.size for file in files])
    size = sum(file.size for file in files)
    with st.spinner(f"Reading {counted(len(files), 'file')} ({mb(size)})…" if size >= 1e6 else f"Reading {counted(len(files), 'file')}…"):
        refused = Imported(rejected=[Rejection("upload", "", fault)])
        given = [(file.name, file.getvalue()) for file in files]
        _imported(refused if fault else import_files_apart(given, workspace(), on_wait=_says_waiting()))
    # A new key empties the widget, which frees the bytes and prevents a second import.
    st.session_state["uploads"] = number + 1
    st.rerun()


def _says_waiting() -> Callable[[], object]:
    """Shows that the import waits for others; a visitor who has left the page waits no longer."""
    place = st.empty()
    return lambda: place.info(WAITING, icon=":material/hourglass_empty:")


def _imported(result: Imported, *, scanned: str = "") -> None:
    """Keep the result and the summary of its secret scan for the report; other pages open the first new trace next."""
    st.session_state["imported"], st.session_state["scanned"] = result, scanned
    if result.traces:
        remember("trace", str(result.traces[0]["trace_id"]))


def _from_path() -> None:
    if not may_read_this_computer():
        st.info(how_to_get_in(), icon=":material/key:")
        return
    roots = readable_roots()
    with st.form("path-form", border=False):
        path = st.text_input("File or folder on the server", key="path", placeholder="/data/runs or /data/run.jsonl.gz")
        sent = st.form_submit_button("Import")
    st.caption(f"Readable folders: {', '.join(in_code(str(root)) for root in roots) or 'none'}. {roots_help()}")
    if sent and path:
        with st.spinner("Reading…"):
            _imported(import_paths_apart([path.strip()], workspace(), roots, on_wait=_says_waiting()))
        st.rerun()


def import_report(result: Imported) -> None:
    """Traces read, warnings and rejected files."""
    if result.traces:
        found = sorted({row["format"] for row in result.traces})
        known = f" {result.known:,} already in the library." if result.known else ""
        formats = ", ".join(f"`{name}`" for name in found)
        st.success(f"{counted(len(result.traces), 'trace')} read. Detected format: {formats}.{known}")
        if scanned := st.session_state.get("scanned"):
            st.caption(scanned)
        _files(files_of(result))
        open_links(str(result.traces[0]["trace_id"]), "it" if len(result.traces) == 1 else "the first one")
    if result.rejected:
        rejections(result.rejected)
    warned = [{"Name": name_of(row), "Where": item["where"], "Warning": item["text"]} for row in result.traces for item in row["warnings"]]
    if warned:
        st.warning(f"{counted(len(warned), 'warning')}: the traces were read, but parts of them could not be represented exactly.")
        table(warned[:1_000], height=table_height(len(warned), most=250))


def _files(rows: list[dict[str, Any]]) -> None:
    """The result of each file."""
    several = any(row["traces"] > 1 for row in rows)
    table(
        [
            {
                "Name": row["name"],
                "Format": row["format"],
                **({"Traces": row["traces"]} if several else {}),
                "Turns": row["turns"],
                "Calls": row["tool_calls"],
                "Results": row["tool_results"],
                "Not read": "; ".join(row["not_read"]) or "nothing",
                "Confidence": row["confidence"],
                "Tokens": short(row["tokens"]),
                "Warnings": row["warnings"],
            }
            for row in rows
        ],
        height=table_height(len(rows), most=250),
        column_config={
            "Name": st.column_config.TextColumn(width=150),
            "Not read": st.column_config.TextColumn(help=HINTS["not_read"], width=90),
            "Confidence": st.column_config.TextColumn(help=HINTS["confidence"]),
        },
    )
