"""Traces, the home page: the drop zone, a chart of the demo or of the user's own trace, and the library."""

from typing import Any

import streamlit as st

from pamer_lab.figures.text import counted, short
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.ui.shared.loaders import catalogue, rows_or_demo
from pamer_lab.ui.shared.page import run
from pamer_lab.ui.traces.adding import add_traces, import_report, last_import
from pamer_lab.ui.traces.home import Demo, demo_links, find_demo, own_picture, own_trace, picture, tour
from pamer_lab.ui.traces.library import filtered, library_table
from pamer_lab.workspace.catalogue import Filters

INTRODUCTION = "See what the model still had in context at each turn, why the rest was dropped, and whether that was right."


def first_screen(demo: Demo | None, own: dict[str, Any] | None, *, offer_demo: bool) -> None:
    """The drop zone, next to a chart or the result of the last import."""
    if reviewer_mode():
        if demo:
            picture(demo)
        return
    left, right = st.columns([4, 5], gap="large")
    with right:
        last = last_import()
        if last is not None:
            import_report(last)
        elif demo:
            picture(demo)
        elif own:
            own_picture(own)
    with left:
        add_traces(offer_demo=offer_demo)
        if demo and last is None:
            demo_links(demo)


def main() -> None:
    rows, imported = rows_or_demo()
    only_demo = bool(rows) and catalogue().complete and all(row["demo"] for row in rows)
    demo = None
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title("Traces", width="stretch")
        if rows and st.toggle("Tour", value=only_demo, key="tour", bind="query-params", help="Show the demo chart and the tour."):
            demo = find_demo(rows)
    st.markdown(INTRODUCTION)
    first_screen(demo, own_trace(rows), offer_demo=not catalogue(Filters(owners="demo")).fitting)
    if imported and imported.rejected:
        import_report(imported)
    if rows:
        if only_demo:
            st.caption("These demo traces come with PaMER Lab. Open one to look around, or drop your own above.")
        found = filtered()
        if found.complete:
            turns, tokens = (sum(row[name] for row in found.rows) for name in ("turns", "tokens"))
            size = f" · {counted(turns, 'turn')} · {short(tokens)} tokens"
        else:
            size = f". The table shows the {len(found.rows):,} most recently stored; search or filter to see others."
        st.caption(f"{found.fitting:,} of {counted(found.total, 'trace')}{size}")
        library_table(found.rows)
    else:
        st.info("There are no traces yet." if reviewer_mode() else "There are no traces yet. Drop a file above.")
    if demo:
        tour(demo)


run(main)
