"""The table of traces: filters, links, removal."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from pamer_lab.figures.text import counted, one_line
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.ui.shared.loaders import catalogue, known_formats, workspace
from pamer_lab.ui.shared.marks import entered
from pamer_lab.ui.shared.picker import task_of, trace_label
from pamer_lab.ui.shared.runs import policies_of_traces
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.ui.traces.home import pictures
from pamer_lab.workspace.catalogue import Filters, Listed

STEPS = {
    "turns": {"0": 0, "5": 5, "10": 10, "20": 20, "50": 50, "100": 100, "200": 200, "500": 500, "any": None},
    "tokens": {
        "0": 0,
        "1K": 1_000,
        "5K": 5_000,
        "10K": 10_000,
        "20K": 20_000,
        "50K": 50_000,
        "100K": 100_000,
        "500K": 500_000,
        "any": None,
    },
}
"""Limits the filters offer; `any` sets none."""
BUTTONS = {"Open": "pages/trace.py", "Replay": "pages/replay.py"}
"""What a button of the table opens when Enter is pressed on it."""
TABLE_HEIGHT = 420
MOST_NAMED = 12
"""Traces that are named before they are removed."""


def filtered() -> Listed:
    """The traces that fit the filters; the filters are in the URL."""
    find, formats, turns, tokens = st.columns([3, 3, 2, 2], gap="medium")
    words = find.text_input(
        "Search",
        key="find",
        bind="query-params",
        placeholder="name, question, task, model or id",
        icon=":material/search:",
    )
    wanted = formats.multiselect(
        "Format", known_formats(), key="format", bind="query-params", placeholder="all formats", help=HINTS["format"]
    )
    searched = Filters().searched + (() if reviewer_mode() else ("path",))  # reviewers see no folders
    return catalogue(Filters(words or "", searched, wanted, _limits(turns, "turns"), _limits(tokens, "tokens")))


def _limits(place: Any, name: str) -> tuple[float, float]:
    steps = STEPS[name]
    low, high = place.select_slider(
        name.capitalize(),
        list(steps),
        value=("0", "any"),
        key=name,
        bind="query-params",
        help=HINTS["turn" if name == "turns" else "tokens"],
    )
    lower, upper = steps[low], steps[high]
    return (float("inf") if lower is None else lower, float("inf") if upper is None else upper)


def library_table(rows: Sequence[dict[str, Any]]) -> None:
    """The traces; a button opens one, and chosen rows can be removed."""
    if not rows:
        st.info("No trace matches these filters.")
        return
    column = st.column_config
    # Streamlit keeps selected rows by their number, so a table of other traces must be another widget.
    key = f"library-{_digest(row['trace_id'] for row in rows)}"
    st.dataframe(
        _table_rows(rows),
        hide_index=True,
        height="auto" if len(rows) <= 10 else TABLE_HEIGHT,
        key=key,
        on_select="rerun",
        selection_mode="multi-row",
        placeholder="",
        column_config={
            "Open": column.ButtonColumn(" ", width=80, alignment="left", key="open_trace"),
            "Replay": column.ButtonColumn("  ", width=90, alignment="left", key="replay_trace"),
            "Name": column.TextColumn(width=190),
            "#": column.NumberColumn(width=45, help="Number of the trace in its file, counted from 0."),
            "Task": column.TextColumn(width=210, help=f"The question or task as the source names it. {HINTS['question']}"),
            "Demo": column.TextColumn(width=60, help=HINTS["demo"]),
            "Turns": column.NumberColumn(width=70, help=HINTS["turn"]),
            "Tokens": column.NumberColumn(
                width=80, format="localized", help=f"{HINTS['tokens']} Counted with {one_line(rows[0]['tokenizer'])}."
            ),
            "Context": column.LineChartColumn(
                width=110, y_min=0, color="gray", help=f"{HINTS['context']} First turn to last, each on its own scale."
            ),
            "Replayed with": column.TextColumn(help=f"Policies with a run in this workspace. {HINTS['policy']}"),
            "Calls": column.NumberColumn(width=60, help="Tool calls."),
            "Format": column.TextColumn(help=HINTS["format"]),
            "Reward": column.NumberColumn(width=70, format="%.2g", help=HINTS["reward"]),
            "Labels": column.NumberColumn(width=65, help=HINTS["labels"]),
            "Events": column.NumberColumn(width=65, help=HINTS["events"]),
            "Warnings": column.NumberColumn(width=85, help=HINTS["warnings"]),
        },
    )
    for column_key, page in (("open_trace", "pages/trace.py"), ("replay_trace", "pages/replay.py")):
        clicked = st.session_state.get(column_key)
        if clicked is not None and clicked["row"] < len(rows):
            st.switch_page(page, query_params={"trace": rows[clicked["row"]]["trace_id"]})
    pressed = entered(key, key="library-enter")
    if pressed is not None and pressed["cell"] in BUTTONS:
        st.switch_page(BUTTONS[pressed["cell"]], query_params={"trace": row_with(rows, pressed["cells"], pressed["row"])["trace_id"]})
    chosen = [rows[number] for number in st.session_state[key]["selection"]["rows"] if number < len(rows)]
    if chosen:
        _actions(chosen)


def row_with(rows: Sequence[dict[str, Any]], cells: Sequence[str], at: int) -> dict[str, Any]:
    """The row that shows these cells; if several or none do, preferably the one at this place."""
    alike = [row for row in rows if {one_line(row["name"] or row["trace_id"], 80), f"{row['tokens']:,}", f"{row['turns']}"} <= set(cells)]
    placed = rows[min(at, len(rows) - 1)]
    return placed if placed in alike or not alike else alike[0]


def _digest(ids: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]


def _actions(chosen: Sequence[dict[str, Any]]) -> None:
    """What can be done with the selected traces."""
    ids = [str(row["trace_id"]) for row in chosen]
    with st.container(horizontal=True, vertical_alignment="center"):
        it = "it" if len(ids) == 1 else "the first"
        st.page_link("pages/replay.py", label=f"Replay {it}", icon=":material/replay:", query_params={"trace": ids[0]})
        st.page_link(
            "pages/growth.py",
            label=f"Compare policies on {counted(len(ids), 'trace')}",
            icon=":material/trending_up:",
            query_params={"traces": ",".join(ids), "owners": "all"},
        )
        if not reviewer_mode():
            _removal(chosen)


def _removal(chosen: Sequence[dict[str, Any]]) -> None:
    """The selected traces by name, and the button that removes them."""
    with st.popover(f"Remove {counted(len(chosen), 'trace')} from the workspace…", icon=":material/delete:"):
        names = [f"- {in_code(trace_label(row), 100)}" for row in chosen[:MOST_NAMED]]
        more = [f"- and {len(chosen) - MOST_NAMED:,} more"] * (len(chosen) > MOST_NAMED)
        st.markdown("\n".join(["These traces are removed from the workspace. Their source files are not deleted:", "", *names, *more]))
        if st.button("Remove", key="remove", type="primary"):
            for row in chosen:
                workspace().remove_trace(row["trace_id"])
            st.rerun()


def _table_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as the table shows them; empty columns are left out."""
    small, replayed = pictures(rows), policies_of_traces(row["trace_id"] for row in rows)
    several = {_file_of(row) for row in rows if row["index"]}
    table_rows = [_table_row(row, small.get(row["trace_id"]), replayed.get(row["trace_id"], ()), several) for row in rows]
    filled = {key for row in table_rows for key, value in row.items() if value or key in ("Open", "Replay", "Turns", "Tokens", "Calls")}
    return [{key: value for key, value in row.items() if key in filled} for row in table_rows]


def _file_of(row: dict[str, Any]) -> str:
    return str(row["path"] or row["name"])


def _table_row(row: dict[str, Any], picture: list[int] | None, policies: Sequence[tuple[str, bool]], several: set[str]) -> dict[str, Any]:
    """Columns that tell rows apart come first, so that they can be read without scrolling; `several`: files with more than one trace."""
    return {
        "Open": "Open",
        "Replay": "Replay",
        "Name": one_line(row["name"] or row["trace_id"], 80),
        "#": row["index"] if _file_of(row) in several else None,
        "Task": task_of(row),
        "Reward": row["reward"],
        "Turns": row["turns"],
        "Tokens": row["tokens"],
        "Context": picture,
        "Format": row["format"],
        "Demo": "demo" if row["demo"] else "",
        "Calls": row["tool_calls"],
        "Model": one_line(row["model"], 40),
        "Labels": row["labels"],
        "Events": row["events"],
        "Warnings": row["warnings"],
        "Replayed with": ", ".join(one_line(name, 40) + ("" if done else " (unfinished)") for name, done in policies),
    }
