"""Moving through a trace: search with its hits, paging, the outline. The open block, the search and the hit are in the URL.

Invariant: `page` is what the reader shows and what the buttons step by.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa
import streamlit as st

from pamer_lab.figures.text import one_line, short
from pamer_lab.ui.shared.keys import ALL_KEYS
from pamer_lab.ui.shared.loaders import MOST_HITS, hits, table_version
from pamer_lab.ui.shared.marks import Click, Mark, mark_words, marks
from pamer_lab.ui.shared.text import excerpt
from pamer_lab.ui.shared.transcript import PREFIX, Hit, Transcript
from pamer_lab.ui.shared.widgets import ROW_HEIGHT, mark_row, table_height
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.workspace import TRACES

PAGE_BODIES = 24
"""Maximum bodies on one page, which a browser draws all at once; it should never have to hold more than 50."""
OUTLINE_HEIGHT = 640
MOST_LISTED = 300
"""Hits in the list; the buttons reach all."""
BY_ROW = "opened-by-row"
"""Session key, set while a clicked row opens its block: a chart click that is still pending is older and is ignored."""
CHARTS = ("growth", "strip")
"""Keys of the charts in which a block can be clicked."""


def prefix_room(transcript: Transcript) -> int:
    """How many bodies of the prefix are on the first page."""
    return min(len(transcript.bodies(PREFIX)), PAGE_BODIES // 2)


def page(transcript: Transcript, block: int) -> range:
    """The blocks on the page that begins with `block`."""
    return transcript.window(block, PAGE_BODIES - (0 if block else prefix_room(transcript)))


def navigation(transcript: Transcript) -> tuple[int, Hit | None]:
    """Search and paging; returns the open block and the current search hit, if any."""
    st.session_state.pop(BY_ROW, None)
    find, where = st.columns([5, 4], vertical_alignment="bottom")
    words = find.text_input(
        "Search this trace",
        key="q",
        bind="query-params",
        type="search",
        placeholder="Search this trace",
        on_change=_go_to_hit,
        args=(transcript,),
        icon=":material/search:",
        label_visibility="collapsed",
    )
    hit = None
    if words:
        found = hits(transcript, words)
        with st.container(horizontal=True, vertical_alignment="center"):
            hit = _hit_line(transcript, found)
        if len(found) > 1:
            _hit_list(transcript, found)
    if hit and "block" not in st.session_state and "block" not in st.query_params:
        st.session_state["block"] = max(hit.block, 0)
    count = len(transcript.sizes)
    with where.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="right", wrap=False):
        block = int(
            st.number_input(
                f"Block, 0 to {count - 1:,}",
                min_value=0,
                max_value=count - 1,
                key="block",
                bind="query-params",
                width=130,
                help=HINTS["block"],
            )
            or 0
        )
        shown = page(transcript, block)
        before = transcript.window_before(block, PAGE_BODIES)
        for name, icon, target, known, letter in (
            ("Previous page", ":material/chevron_left:", before, block > 0, "k"),
            ("Next page", ":material/chevron_right:", shown.stop, shown.stop < count, "j"),
        ):
            hint = f"{name}. {ALL_KEYS}"
            st.button(icon, key=name, help=hint, disabled=not known, on_click=open_block, args=(target,), shortcut=letter)
        mark_words(words or "", table="outline", row=block, height=ROW_HEIGHT, key="reading")
        marks(dict.fromkeys(CHARTS, Mark(block, (shown.start - 0.5, shown.stop - 0.5))), _open_clicked(count), key="block-marks")
    return block, hit


def _open_clicked(count: int) -> Callable[[Click], None]:
    """A click in a chart opens the block under it."""

    def clicked(click: Click) -> None:
        if 0 <= click.x < count and BY_ROW not in st.session_state:
            open_block(click.x)

    return clicked


def open_block(block: int) -> None:
    st.session_state["block"] = block


def _hit_line(transcript: Transcript, found: list[Hit]) -> Hit | None:
    """The current hit, with buttons to its neighbours."""
    if not found:
        st.markdown("Not found in this trace")
        return None
    number = _hit_number(len(found))
    hit = found[number - 1]
    more = " or more" if len(found) >= MOST_HITS else ""
    place = "the prefix" if hit.block == PREFIX else f"block {hit.block}"
    st.markdown(f"Hit **{number:,} of {len(found):,}**{more}, in {place}", width="content")
    for name, other in (("Previous hit", number - 1), ("Next hit", number + 1)):
        known = 1 <= other <= len(found)
        st.button(name, key=name, disabled=not known, on_click=_go_to_hit, args=(transcript, other), type="tertiary")
    return hit


def _hit_list(transcript: Transcript, found: Sequence[Hit]) -> None:
    """The hits one per row; a row opens its block."""
    panel = st.expander(f"All {len(found):,} hits", key="hit-list", on_change="rerun")
    if not panel.open:
        return
    shown = found[:MOST_LISTED]

    def opened() -> None:
        cells = st.session_state["hits"]["selection"]["cells"]
        if cells and int(cells[0][0]) < len(shown):
            _go_to_hit(transcript, int(cells[0][0]) + 1)

    with panel:
        st.dataframe(
            [_hit_row(transcript, hit, number) for number, hit in enumerate(shown, 1)],
            hide_index=True,
            placeholder="",
            key="hits",
            on_select=opened,
            selection_mode="single-cell",
            height=table_height(len(shown), most=240),
            column_config={
                "Hit": st.column_config.NumberColumn(width=50),
                "Block": st.column_config.TextColumn(width=60),
                "In": st.column_config.TextColumn(width=110),
            },
        )
        if len(found) > len(shown):
            st.caption(f"The first {len(shown):,} of {len(found):,} hits are listed.")


def _hit_row(transcript: Transcript, hit: Hit, number: int) -> dict[str, str | int]:
    body = next(piece for piece in transcript.bodies(hit.block) if piece.key == hit.body)
    text = f"tool ⟦{one_line(body.name)}⟧" if hit.start == hit.end else excerpt(body.text, hit.start, hit.end, around=60)
    return {
        "Hit": number,
        "Block": "prefix" if hit.block == PREFIX else str(hit.block),
        "In": one_line(f"{body.kind} {body.name}", 30),
        "Text": one_line(text, 240),
    }


def _hit_number(count: int) -> int:
    asked = st.query_params.get("hit", "")
    return int(asked) if asked.isascii() and asked.isdigit() and 1 <= int(asked) <= count else 1


def _go_to_hit(transcript: Transcript, number: int = 1) -> None:
    """Open the block of a hit; the first hit needs no number in the URL."""
    if number > 1:
        st.query_params["hit"] = str(number)
    else:
        st.query_params.pop("hit", None)
    found = hits(transcript, st.session_state["q"] or "")
    if found:
        open_block(max(found[number - 1].block, 0))


@st.cache_resource(max_entries=8, show_spinner=False)
def _outline_table(trace_id: str, at: tuple[int, int], _transcript: Transcript) -> pa.Table:
    rows = _transcript.outline
    columns: dict[str, list[str | int]] = {
        "Block": [row["block"] for row in rows],
        "Tokens": [short(int(row["tokens"])) for row in rows],
        "Marks": [row["marks"] for row in rows],
        "Action": [row["what"] for row in rows],
    }
    return pa.table({name: values for name, values in columns.items() if name != "Marks" or any(values)})


def outline_table(transcript: Transcript) -> pa.Table:
    """The outline as the table shows it, made once for each version of the stored traces, since labels may come later."""
    return _outline_table(transcript.trace.trace_id, table_version(TRACES), transcript)


def outline(transcript: Transcript, block: int) -> None:
    """All blocks as a list; a click opens one, and `▸` marks the open one.

    It is not selected: a selection set here would come back from the browser as a click and undo the next one. A clicked row is deselected
    when another block opens, since a second click on a selected row reports nothing.
    """

    def opened() -> None:
        cells = st.session_state["outline"]["selection"]["cells"]
        if cells and int(cells[0][0]) < len(transcript.sizes):
            st.session_state[BY_ROW] = True
            open_block(int(cells[0][0]))

    chosen = st.session_state["outline"]["selection"]["cells"] if "outline" in st.session_state else []
    if chosen and int(chosen[0][0]) != block:
        mark_row("outline", None, "Block")
    st.markdown("**Outline**", help="Click a row to open its block. " + HINTS["marks"])
    rows = outline_table(transcript)
    signs = pa.array(["▸" if number == block else "" for number in range(rows.num_rows)])
    st.dataframe(
        rows.add_column(0, " ", signs),
        hide_index=True,
        placeholder="",
        height=table_height(rows.num_rows, most=OUTLINE_HEIGHT),
        key="outline",
        on_select=opened,
        selection_mode="single-cell",
        column_config={
            " ": st.column_config.TextColumn(width=30),
            "Block": st.column_config.NumberColumn(width=50),
            "Tokens": st.column_config.TextColumn(width=60, alignment="right"),
        },
    )
