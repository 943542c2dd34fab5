"""Widgets for untrusted text and for our own sentences.

Trace text goes through `body` (a code block, capped) or a table, never through Markdown or HTML.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st

from pamer_lab.errors import InputError, LabError
from pamer_lab.figures.text import counted, one_line, visible
from pamer_lab.trajectory import Rejection
from pamer_lab.ui.shared.text import CAP, PIECE, in_code

LEAD = 300
"""Characters shown before a search hit."""
ROW_HEIGHT = 33
"""Pixels of a table's row, headings included, at the theme's font size."""
TALL = 420
"""Height in pixels of a body that is shown completely."""


def body(text: str, *, key: str, at: int = 0, language: str | None = None) -> None:
    """A text as it is, capped; `at`: the position that a search wants to show; `language`: for syntax colours (`diff`, `bash`)."""
    if not text:
        st.caption("(empty)")
        return
    if len(text) <= CAP:
        st.code(visible(text), language=language, wrap_lines=True)
        return
    size = counted(len(text), "character")
    if st.toggle(f"Show all {size}", key=f"all-{key}"):
        _whole(text, key)
        return
    start = max(0, at - LEAD) if at > CAP - LEAD else 0
    end = min(len(text), start + CAP)
    st.code(visible(text[start:end]), language=language, wrap_lines=True)
    st.caption(f"Characters {start + 1:,} to {end:,} of {size}.")


def _whole(text: str, key: str) -> None:
    pieces = -(-len(text) // PIECE)
    number = st.pagination(pieces, key=f"piece-{key}") - 1 if pieces > 1 else 0
    piece = text[number * PIECE : (number + 1) * PIECE]
    st.code(visible(piece), language=None, wrap_lines=True, height=TALL)
    if pieces > 1:
        st.caption(f"Part {number + 1} of {pieces}, {PIECE:,} characters each.")


@contextmanager
def sentences() -> Iterator[None]:
    """Show our own errors as their sentence and skip the rest of the page."""
    try:
        yield
    except InputError as error:
        st.error(in_code(error.sentence, 600))
    except LabError as error:
        st.error(in_code(str(error), 600))


def missing_trace(trace_id: str, open_before: str = "") -> None:
    """What a link needs when its trace is not here; `open_before` names a trace that was open and has been removed since."""
    if open_before:
        st.warning(f"The trace {in_code(open_before, 120)} that you had open is no longer in this workspace. Choose another one.")
        return
    st.error(f"The trace {in_code(trace_id, 80)} in this link is not in this workspace.")
    st.markdown("Import its file on the Traces page. The same file always gets the same id, so the link will then work.")
    st.page_link("pages/traces.py", label="Go to Traces", icon=":material/list_alt:")


REASON_HEIGHT = 100
"""Pixels of a row that shows a reason of up to five lines in full."""


def rejections(rejected: Sequence[Rejection]) -> None:
    """What was not imported, and why."""
    st.error(f"{counted(len(rejected), 'file or trace', 'files or traces')} could not be read. The others are unaffected.")
    column = st.column_config
    table(
        [{"File": item.path, "Where": item.where or "complete file", "Why": item.reason} for item in rejected],
        column_config={
            "File": column.TextColumn(width=105),
            "Where": column.TextColumn(width=85),
            "Why": column.TextColumn(width=260),
        },
        row_height=REASON_HEIGHT,
    )


def mark_row(key: str, row: int | None, column: str) -> None:
    """Select `row` in a table of single cells before it is drawn.

    Otherwise a clicked row would stay selected after the reader moved on by other means, and clicking it again would only deselect it.
    """
    cells = st.session_state[key]["selection"]["cells"] if key in st.session_state else []
    if [int(cell[0]) for cell in cells] != ([] if row is None else [row]):
        st.session_state[key] = {"selection": {"rows": [], "columns": [], "cells": [] if row is None else [[row, column]]}}


def choose_part(parts: Sequence[str], *, key: str, renamed: Mapping[str, str] | None = None) -> str:
    """Which part of a page is open; only that one is computed. `renamed` keeps links with an old name working."""
    asked = st.query_params.get(key, "")
    if renamed and asked in renamed:
        st.query_params[key] = renamed[asked]
        st.session_state[key] = renamed[asked]
    picked = st.segmented_control(
        "Part", list(parts), default=parts[0], required=True, key=key, bind="query-params", label_visibility="collapsed"
    )
    return picked or parts[0]


def table_height(rows: int, *, most: int) -> int:
    """Height in pixels of a table with this many rows, without an empty strip below them; a longer one scrolls."""
    return min(most, ROW_HEIGHT * (rows + 1) + 3)


def table(rows: Sequence[dict[str, Any]], column_config: Mapping[str, Any] | None = None, **options: Any) -> None:
    """A plain table; its cells are text, whatever they contain, and counts have thousands separators."""
    shown = [{key: one_line(value, 400) if isinstance(value, str) else value for key, value in row.items()} for row in rows]
    columns = whole_numbers(rows) | dict(column_config or {})
    st.dataframe(shown, hide_index=True, width="stretch", placeholder="", column_config=columns, **options)


def whole_numbers(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How columns of integers are shown."""
    names = dict.fromkeys(name for row in rows for name in row)
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in names}
    integers = [name for name, found in values.items() if found and all(type(value) is int for value in found)]
    return {name: st.column_config.NumberColumn(format="localized") for name in integers}
