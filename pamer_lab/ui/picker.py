"""Choosing the trace a page is about; the choice stands in the URL and follows the reader from page to page."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pamer_lab.ui.numbers import counted, short
from pamer_lab.ui.state import choose, chosen
from pamer_lab.ui.text import one_line
from pamer_lab.ui.widgets import missing_trace


def trace_label(row: dict[str, Any]) -> str:
    """A trace's name in lists: file, number in the file, size."""
    name = one_line(row["name"] or row["trace_id"], 60)
    number = f" #{row['index']}" if row["index"] else ""
    demo = " · demo" if row["demo"] else ""
    return f"{name}{number} · {counted(row['turns'], 'turn')} · {short(row['tokens'])} tokens{demo}"


def pick_trace(rows: Sequence[dict[str, Any]], *, on_change: Callable[[], None] | None = None, first: str = "") -> str | None:
    """The chosen trace's id, or None after saying what is missing; `first` opens where nothing was chosen yet."""
    known = {row["trace_id"]: row for row in rows}
    wanted = chosen("trace")
    if wanted and wanted not in known:
        missing_trace(wanted)
        return None
    if not known:
        st.info("There are no traces yet. Add a file on the Traces page.")
        st.page_link("pages/traces.py", label="Go to Traces", icon=":material/list_alt:")
        return None
    st.session_state["picked_trace"] = wanted or (first if first in known else next(iter(known)))

    def changed() -> None:
        choose("trace", st.session_state["picked_trace"])
        if on_change:
            on_change()

    picked: str = st.selectbox(
        "Trace",
        list(known),
        format_func=lambda trace_id: trace_label(known[trace_id]),
        key="picked_trace",
        on_change=changed,
        label_visibility="collapsed",
    )
    choose("trace", picked)
    return picked
