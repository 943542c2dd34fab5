"""Finding the sessions of coding agents on this computer: a list to choose from, the secret scan, the import."""

from pathlib import Path

import streamlit as st

from pamer_lab.figures.text import counted, one_line
from pamer_lab.redaction import Scan
from pamer_lab.ui.shared.gate import how_to_get_in, may_read_this_computer
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.share import choose_redaction
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import table_height
from pamer_lab.workspace.ingest import Imported
from pamer_lab.workspace.roots import readable_roots, roots_help
from pamer_lab.workspace.sessions import TOOLS, Found, all_folders, find_sessions, import_sessions, tool_folders

TITLE = "Find sessions on this computer"
NAMES = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "gemini": "Gemini CLI",
    "copilot": "Copilot",
    "cursor": "Cursor",
    "qwen": "Qwen Code",
    "goose": "Goose",
}
"""Display names of the tools."""


@st.cache_data(ttl=60, max_entries=16, show_spinner="Looking for sessions…")
def _found(tool: str, roots: tuple[str, ...]) -> Found:
    return find_sessions(tool, allowed=[Path(root) for root in roots])


def sessions_here() -> tuple[Imported, Scan] | None:
    """The panel; returns the result of an import, if the reader asked for one, and of the secret scan before it."""
    if not may_read_this_computer():
        st.info(how_to_get_in(), icon=":material/key:")
        return None
    roots = readable_roots(sessions=all_folders())
    tools = [name for name in TOOLS if tool_folders(name, roots)]
    if not tools:
        st.info(f"None of the usual folders of {', '.join(NAMES.values())} can be read here. {roots_help()}")
        return None
    tool = st.segmented_control("Agent", tools, default=tools[0], required=True, key="sessions-tool", format_func=NAMES.__getitem__)
    found = _found(tool or tools[0], tuple(map(str, roots)))
    older = f", {found.left:,} older ones not listed" if found.left else ""
    st.caption(f"{counted(len(found.sessions), 'session')} in {', '.join(in_code(folder) for folder in found.folders)}{older}.")
    return _choose(tool or tools[0], found) if found.sessions else None


def _choose(tool: str, found: Found) -> tuple[Imported, Scan] | None:
    rows = [
        {
            "Date": session.modified[:16].replace("T", " "),
            "Turns": session.turns,
            "kB": round(session.bytes / 1000),
            "First message": one_line(session.fault or session.first, 200),
        }
        for session in found.sessions
    ]
    picked = st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        height=table_height(len(rows), most=300),
        on_select="rerun",
        selection_mode="multi-row",
        key=f"sessions-{tool}",
    )
    redact = choose_redaction("sessions-redact")
    chosen = [found.sessions[number] for number in picked.selection.rows if not found.sessions[number].fault]
    words = f"Import {counted(len(chosen), 'session')}" if chosen else "Select sessions in the table"
    if not st.button(words, key="sessions-import", disabled=not chosen, type="primary"):
        return None
    with st.spinner("Scanning for secrets and reading…"):
        return import_sessions(chosen, workspace(), redact=redact)
