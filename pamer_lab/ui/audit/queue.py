"""The queue of the audit page: filters, progress of the review, and the list of selections.

Filters and the open selection are in the URL; the reviewer's name is not, since a link must not make others review under that name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pamer_lab.audit.queue import SHOWS, Entry, Filters, progress
from pamer_lab.audit.store import restored_tokens
from pamer_lab.figures.text import counted, one_line, share
from pamer_lab.runs.values import RunInfo
from pamer_lab.ui.audit.reviewer import reviewing_as
from pamer_lab.ui.shared.state import choose, chosen, settle
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.widgets import mark_row, table_height
from pamer_lab.ui.shared.words import HINTS

OUTCOMES = ["accepted", "present", "empty", "declined", "refused"]
OUTCOME_COLOURS = {"accepted": "green", "present": "green", "empty": "gray", "declined": "gray", "refused": "orange"}
OUTCOME_SIGNS = {"accepted": "▲", "present": "=", "empty": "·", "declined": "·", "refused": "✕"}
MARKS = {"right": "✓", "missing evidence": "+", "unnecessary step": "−", "wrong step": "✕"}
HEIGHT = 560


def run_label(run_id: str, heads: Mapping[str, RunInfo], names: Mapping[str, str]) -> str:
    """A run in a list: its trace, policy and time."""
    head = heads.get(run_id)
    if head is None:
        return f"{run_id or 'live session'} (run not in this workspace)"
    return f"{one_line(names.get(head.trace_id, head.trace_id), 40)} · {head.policy} · {head.started[:16].replace('T', ' ')}"


def choose_filters(queue: Sequence[Entry], heads: Mapping[str, RunInfo], names: Mapping[str, str]) -> tuple[Filters, str]:
    """Run, outcome and state of review; and the reviewer's name."""
    runs = list(dict.fromkeys(str(entry.row["run_id"]) for entry in queue))
    asked = st.query_params.get("run", "")
    if asked and asked not in runs:
        st.warning(
            f"The run {in_code(asked, 60)} in this link has no selections here, so all runs are shown. Replay its trace with pamer+ first."
        )
    settle("run", ["", *runs], "")
    left, middle, right, who = st.columns([4, 2, 3, 2], gap="medium", vertical_alignment="bottom")
    run_id = left.selectbox(
        "Run",
        ["", *runs],
        key="run",
        format_func=lambda name: run_label(name, heads, names) if name else (f"all {len(runs)} runs" if len(runs) > 1 else "the only run"),
        on_change=_forget,
    )
    _to_url("run", run_id)
    accepted = any(entry.row["outcome"] == OUTCOMES[0] for entry in queue if run_id in ("", entry.row["run_id"]))
    outcome = middle.selectbox(
        "Outcome",
        ["", *OUTCOMES],
        # Accepted selections, which restored something, are the ones to judge.
        index=1 if accepted else 0,
        key="outcome",
        bind="query-params",
        format_func=lambda name: name or "all",
        help=HINTS["outcome"],
    )
    show = right.selectbox("Show", SHOWS, key="show", bind="query-params", help=HINTS["queue"])
    with who:
        reviewer = reviewing_as()
    return Filters(run_id or "", outcome or "", show), reviewer


def _forget() -> None:
    """Another run was chosen, which has other selections and outcomes."""
    st.session_state.pop("outcome", None)
    st.query_params.pop("outcome", None)
    st.session_state.pop("chosen:selection", None)
    st.query_params.pop("selection", None)


def _to_url(name: str, value: str) -> None:
    if value:
        st.query_params[name] = value
    else:
        st.query_params.pop(name, None)


def headline(shown: Sequence[Entry], reviewer: str) -> None:
    """The outcomes in the queue, and the progress of the review."""
    outcomes = Counter(str(entry.row["outcome"]) for entry in shown)
    said = ", ".join(f"{outcomes[name]:,} {name}" for name in OUTCOMES if outcomes[name])
    picked = sum(restored_tokens(entry.row) for entry in shown)
    covered = sum(int(entry.row["covered_tokens"] or 0) for entry in shown)
    saved = f" · restored **{share(picked, covered)}** of the tokens covered by the chosen summaries" if covered else ""
    done, of = progress(shown, reviewer)
    reviewed = f" · reviewed by you: **{done:,} of {of:,}**" if reviewer else ""
    st.markdown(f"**{counted(len(shown), 'selection')}**: {said}{saved}{reviewed}", help=HINTS["selection"])
    if reviewer and of:
        st.progress(done / of)


def open_selection(audit_id: str) -> None:
    """Open a selection of the queue."""
    choose("selection", audit_id)


def move_selection(names: Sequence[str], drawn: str, by: int) -> None:
    """Move from the selection that is open now; it is not the drawn one if a key was pressed twice before the page was redrawn."""
    now = chosen("selection")
    place = names.index(now if now in names else drawn) + by
    open_selection(names[min(max(place, 0), len(names) - 1)])


def drafts() -> dict[tuple[str, str], str]:
    """Unsaved notes by selection and reviewer; they are kept while other selections are open."""
    found: dict[tuple[str, str], str] = st.session_state.setdefault("drafts", {})
    return found


def current(shown: Sequence[Entry], queue: Sequence[Entry]) -> Entry | None:
    """The open selection: the link's, else the first accepted one, else the first. It stays open if the filters exclude it."""
    wanted = chosen("selection")
    found = next((entry for entry in queue if entry.audit_id == wanted), None)
    return found or next((entry for entry in shown if entry.row["outcome"] == "accepted"), shown[0] if shown else None)


def queue_table(shown: Sequence[Entry], entry: Entry | None, reviewer: str, traces: Mapping[str, str]) -> None:
    """The list; a click opens a selection. The most important columns come first; an outcome that all share is only in the headline."""

    def opened() -> None:
        cells = st.session_state["queue"]["selection"]["cells"]
        if cells and int(cells[0][0]) < len(shown):
            open_selection(shown[int(cells[0][0])].audit_id)

    several = len({one.row["outcome"] for one in shown}) > 1
    st.caption("Click a row to open it.")
    names = [one.audit_id for one in shown]
    mark_row("queue", names.index(entry.audit_id) if entry is not None and entry.audit_id in names else None, "Turn")
    st.dataframe(
        [_line(one, entry, reviewer, traces, outcome=several) for one in shown],
        hide_index=True,
        placeholder="",
        height=table_height(len(shown), most=HEIGHT),
        key="queue",
        on_select=opened,
        selection_mode="single-cell",
        column_config={
            " ": st.column_config.TextColumn(width=24),
            "Turn": st.column_config.NumberColumn(width=45),
            "Steps": st.column_config.TextColumn(width=55),
            "Verdict": st.column_config.TextColumn(
                width=55,
                help="✓ right, + missing evidence, − unnecessary step, ✕ wrong step, ≠ disagree, ? doubtful, ✎ unsaved note.",
            ),
            "Trace": st.column_config.TextColumn(width=80),
            "Outcome": st.column_config.TextColumn(width=85),
        },
    )


def _line(one: Entry, entry: Entry | None, reviewer: str, names: Mapping[str, str], *, outcome: bool) -> dict[str, Any]:
    row = one.row
    marks = (
        MARKS.get(one.by(reviewer), "") if reviewer else " ".join(sorted({MARKS.get(verdict, "?") for verdict in one.verdicts.values()}))
    )
    doubted = reviewer in one.doubtful if reviewer else bool(one.doubtful)
    return {
        " ": "▸" if entry is not None and one.audit_id == entry.audit_id else "",
        "Turn": row["turn"],
        "Steps": ", ".join(map(str, row["steps"] or [])),
        "Verdict": marks
        + (" ≠" if one.disagreed else "")
        + (" ?" if doubted else "")
        + (" ✎" if (one.audit_id, reviewer) in drafts() else ""),
        "Trace": one_line(names.get(row["trace_id"], row["trace_id"] or row["session_id"]), 60),
        **({"Outcome": f"{OUTCOME_SIGNS.get(row['outcome'], '')} {row['outcome']}"} if outcome else {}),
    }
