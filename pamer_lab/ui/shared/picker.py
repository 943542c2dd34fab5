"""The choice of the trace a page is about; it is in the URL and follows the reader from page to page."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pamer_lab.figures.text import counted, one_line, short
from pamer_lab.ui.shared.loaders import catalogue, rows_named
from pamer_lab.ui.shared.state import choose, chosen
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import missing_trace

LABEL = "open-trace-label"
"""Session key: the open trace's id and label, for the message if it is removed."""


def name_of(row: dict[str, Any]) -> str:
    """The name of a trace's file, with the trace's number in it."""
    return f"{row['name'] or row['trace_id']}{number_of(row)}"


def number_of(row: dict[str, Any]) -> str:
    """The number of a trace in a file of several; nothing for the first."""
    return f" #{row['index']}" if row["index"] else ""


def trace_label(row: dict[str, Any]) -> str:
    """A trace's name in lists: file, number in the file, task, size."""
    name = one_line(row["name"] or row["trace_id"], 60)
    demo = " · demo" if row["demo"] else ""
    named = task_of(row)
    says_more = named not in name and named != str(row["index"]) and name.partition(".")[0] not in named
    task = f" · {named}" if says_more else ""
    return f"{name}{number_of(row)}{task} · {counted(row['turns'], 'turn')} · {short(row['tokens'])} tokens{demo}"


def task_of(row: dict[str, Any]) -> str:
    """The question or task as the source names it; empty if it names none."""
    named = next((str(row[key]) for key in ("question_id", "task_id") if row[key] and row[key] != row["trace_id"]), "")
    return one_line(named, 60)


def pick_trace(rows: Sequence[dict[str, Any]], *, on_change: Callable[[], None] | None = None, first: str = "") -> str | None:
    """The chosen trace's id, or None after saying what is missing. If none was chosen yet, `first` opens, or else the reader's own trace.

    If the open trace has been removed, perhaps in another tab, the page says so and opens another; if the trace of a link is missing, the
    page names it and lets the reader pick another.
    """
    wanted = chosen("trace")
    known = {row["trace_id"]: row for row in rows}
    known |= rows_named([name for name in (wanted, first) if name and name not in known])
    missing = wanted not in known and "trace" in st.query_params
    was_open, label = st.session_state.get(LABEL, ("", ""))
    if missing:
        missing_trace(wanted, label if was_open == wanted else "")
    elif wanted and wanted not in known:
        removed = label if was_open == wanted else wanted
        st.warning(f"The trace {in_code(removed, 120)} that you had open is no longer in this workspace. Another one is shown.")
    if not known:
        if not missing:
            st.info("There are no traces yet. Add a file on the Traces page.")
            st.page_link("pages/traces.py", label="Go to Traces", icon=":material/list_alt:")
        return None
    own = next((name for name, row in known.items() if not row["demo"]), next(iter(known)))
    opened = wanted if wanted in known else first if first in known else own
    st.session_state["picked_trace"] = None if missing else opened

    def changed() -> None:
        choose("trace", st.session_state["picked_trace"])
        if on_change:
            on_change()

    picked: str | None = st.selectbox(
        "Trace",
        list(known),
        index=None if missing else 0,
        placeholder="Choose another trace",
        format_func=lambda trace_id: trace_label(known[trace_id]),
        key="picked_trace",
        on_change=changed,
        label_visibility="collapsed",
    )
    if (total := catalogue().total) > len(known):
        st.caption(f"Showing {len(known):,} of {total:,} traces, the most recently stored. Use the search on Traces to find others.")
    if picked is not None:
        choose("trace", picked)
        st.session_state[LABEL] = picked, trace_label(known[picked])
    return picked


def leave_removed() -> None:
    """Redraw the page, which then says so, if the trace has been removed; for a part, which is redrawn without `pick_trace`."""
    if not rows_named([chosen("trace")]):
        st.rerun()
