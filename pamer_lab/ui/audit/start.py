"""The audit page without selections: why it is empty, and one click that makes some."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.availability import why_not
from pamer_lab.policies.registry import parse_policy
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.batch import BatchOptions
from pamer_lab.ui.audit.tools import exchange
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.picker import trace_label
from pamer_lab.ui.shared.run_choice import Choice
from pamer_lab.ui.shared.run_form import follow, last_batch, start, what_it_takes
from pamer_lab.ui.shared.runs import background, run_heads
from pamer_lab.ui.shared.text import in_code

POLICY = "pamer+"
PROFILE = "embedded"


def start_here(rows: Sequence[dict[str, Any]]) -> None:
    """What to do first."""
    if reviewer_mode():
        st.info("There are no selections yet. The owner of this workspace creates them by replaying a trace with pamer+.")
        return
    batch = background().current
    if batch is not None:
        st.info("A replay is running. Its selections will appear here.", icon=":material/hourglass_top:")
        follow(batch)
        return
    st.info("There are no selections yet. Replay a trace with pamer+ to create some: one per turn at which it could restore steps.")
    if not rows:
        st.page_link("pages/traces.py", label="Add a trace", icon=":material/list_alt:")
        return
    factory = Factory(load_profile(PROFILE), workspace())
    reason = why_not(parse_policy(POLICY), factory)
    if reason:
        st.warning(f"**{POLICY}** is not available here: {in_code(reason, 300)}", icon=":material/block:")
    else:
        _offer(rows, Choice((POLICY,), factory, {}))
    with st.expander("Import exported selections"):
        exchange()


def _offer(rows: Sequence[dict[str, Any]], choice: Choice) -> None:
    known = {row["trace_id"]: row for row in rows}
    # A demo of medium length has evidence to choose from and replays quickly.
    order = sorted(known, key=lambda name: (not known[name]["demo"], known[name]["turns"] < 40, known[name]["turns"]))
    trace_id = st.selectbox("Trace", order, format_func=lambda name: trace_label(known[name]), key="audit_trace")
    last_batch(trace_id)
    if any(head.policy == POLICY and head.status == "done" for head in run_heads(trace_id)):
        st.caption("This trace was replayed with pamer+, but it never had memory to choose from. Choose a longer one.")
        return
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(what_it_takes(trace_id, [POLICY], choice), width="stretch")
        st.button(
            "Replay with pamer+",
            key="audit_run",
            type="primary",
            icon=":material/play_arrow:",
            on_click=start,
            args=([trace_id], [POLICY], BatchOptions(PROFILE, "auto", processes=1)),
        )


def missing_selection(audit_id: str) -> None:
    """What to do if the selection of a link is missing."""
    st.warning(
        f"The selection {in_code(audit_id, 60)} in this link is not in this workspace, so another one is open. "
        "Replay the same trace with the same pamer+ settings to get it, or import the exported audit below."
    )
