"""Evidence audit: the selections of PaMER+ one at a time, with chosen and near-miss steps, verdicts and agreement."""

import streamlit as st

from pamer_lab.audit.queue import Entry, filtered
from pamer_lab.memory.schema import MEMORIES
from pamer_lab.report.config import ReplaySection
from pamer_lab.report.replay_part import choice_of
from pamer_lab.runs.values import RunInfo
from pamer_lab.ui.audit.case import evidence, facts, title
from pamer_lab.ui.audit.data import full_row, heads_of, provenance, queue, selection_rows, versions
from pamer_lab.ui.audit.labels import known_labels, label_review
from pamer_lab.ui.audit.queue import choose_filters, current, headline, queue_table
from pamer_lab.ui.audit.review import moves, review_form
from pamer_lab.ui.audit.start import missing_selection, start_here
from pamer_lab.ui.audit.tools import tools
from pamer_lab.ui.shared.loaders import rows_named, rows_or_demo
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.picker import name_of
from pamer_lab.ui.shared.share import Sections, share
from pamer_lab.ui.shared.state import choose, chosen
from pamer_lab.ui.shared.widgets import choose_part

REVIEWED = ["Selections", "Hindsight labels"]
QUESTION = (
    "PaMER+ restores only the steps that a router selects. Were they the right ones? Review one selection at a time, with its text "
    "verified against the trace."
)


def case(entry: Entry, shown: list[Entry], reviewer: str, names: dict[str, str], heads: dict[str, RunInfo]) -> None:
    """The open selection: facts, the review form, the evidence."""
    row = full_row(entry.audit_id)
    if row is None:
        st.info("This selection has been removed.")
        return
    head = heads.get(row["run_id"])
    known = provenance(row["session_id"], row["trace_id"])
    with st.container(horizontal=True, vertical_alignment="center"):
        title(row, head, names.get(row["trace_id"], row["trace_id"] or row["session_id"]))
        if head is not None and row["trace_id"] in names:
            place = {"trace": row["trace_id"], "policies": ["base", head.policy], "policy": head.policy, "turn": str(row["turn"])}
            st.page_link("pages/replay.py", label="Replay", icon=":material/replay:", query_params=place, help="Open this turn in Replay")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):  # keeps them on one line
            moves(shown, entry)
    facts(row, head, versions()[MEMORIES.name])
    review_form(row, entry, shown, reviewer, known.details)
    evidence(row, known)


def _sections(entry: Entry, heads: dict[str, RunInfo]) -> Sections | None:
    """The share file of the open selection: its run, with all selections and reviews."""
    head = heads.get(entry.row["run_id"])
    if head is None:
        return None
    return lambda: [
        ReplaySection(trace_id=head.trace_id, runs=(choice_of(head),), focus="audit", policy=head.policy, turn=int(entry.row["turn"]))
    ]


def main() -> None:
    rows, _ = rows_or_demo()
    name, link = st.columns([7, 1], vertical_alignment="bottom")
    name.title("Evidence audit", help=QUESTION)
    known = queue()
    if known_labels() and choose_part(REVIEWED, key="reviewed") == REVIEWED[1]:
        label_review()
        return
    if not known:
        start_here(rows)
        return
    named = rows_named(str(row["trace_id"]) for row in selection_rows())
    names = {name: name_of(row) for name, row in named.items()}
    heads = heads_of(selection_rows())
    filters, reviewer = choose_filters(known, heads, names)
    shown = filtered(known, filters, reviewer)
    wanted = chosen("selection")
    if wanted and not any(entry.audit_id == wanted for entry in known):
        missing_selection(wanted)
    entry = current(shown, known)
    if not shown:
        done = filters.show == "unreviewed"
        st.info("Everything in this queue is reviewed. Choose another filter." if done else "No selection matches these filters.")
    if entry is not None:
        choose("selection", entry.audit_id)
        with link:
            share(_sections(entry, heads))
        if shown:
            headline(shown, reviewer)
            left, right = st.columns([3, 7], gap="medium")
            with left:
                queue_table(shown, entry, reviewer, names)
        with right if shown else st.container():
            case(entry, shown, reviewer, names, heads)
        st.divider()
    with st.container(key="audit-tools"):
        tools(shown or known)


run_page(main)
