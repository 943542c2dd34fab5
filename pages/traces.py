"""Traces: the library, and how to add to it. This is the home page."""

import streamlit as st

from pamer_lab.figures.numbers import counted, short
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.ui.shared.loaders import rows_or_demo
from pamer_lab.ui.shared.page import run
from pamer_lab.ui.traces.adding import add_traces, import_report
from pamer_lab.ui.traces.home import tour
from pamer_lab.ui.traces.library import filtered, library_table

INTRODUCTION = (
    "What did the model still see at a turn, why was the rest dropped, and was that right? It begins with a recorded run of an agent: "
    "open one to read it block by block and to see how its context grew."
)


def main() -> None:
    rows, demo = rows_or_demo()
    st.title("Traces")
    st.markdown(INTRODUCTION)
    only_demo = bool(rows) and all(row["demo"] for row in rows)
    if rows and st.toggle(
        "Two-minute tour",
        value=only_demo,
        key="tour",
        bind="query-params",
        help="A picture and some links; switch it off when you know your way.",
    ):
        tour(rows)
    if only_demo:
        st.caption("These traces come with PaMER Lab as a demo. Open one to look around, or add your own below.")
    if demo and demo.rejected:
        import_report(demo)
    if rows:
        shown = filtered(rows)
        tokens = sum(row["tokens"] for row in shown)
        turns = sum(row["turns"] for row in shown)
        st.caption(f"{len(shown):,} of {counted(len(rows), 'trace')} · {turns:,} turns · {short(tokens)} tokens")
        library_table(shown)
    else:
        st.info("There are no traces yet." if reviewer_mode() else "There are no traces yet. Add a file below.")
    if not reviewer_mode():
        add_traces()


run(main)
