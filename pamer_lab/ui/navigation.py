"""Moving through a trace: search with its hits, paging, the outline.

The opened block, the search and the hit stand in the URL. What always holds: `page` is what the reader shows and what
the buttons step by.
"""

import streamlit as st

from pamer_lab.ui.loaders import MOST_HITS, hits
from pamer_lab.ui.numbers import short
from pamer_lab.ui.transcript import PREFIX, Hit, Transcript
from pamer_lab.ui.widgets import table_height
from pamer_lab.ui.words import HINTS

PAGE_BODIES = 24
"""Bodies on one page: a browser draws them at once, and 50 would be the most it is asked to hold."""
OUTLINE_HEIGHT = 640


def prefix_room(transcript: Transcript) -> int:
    """How many bodies of the prefix stand on the first page."""
    return min(len(transcript.bodies(PREFIX)), PAGE_BODIES // 2)


def page(transcript: Transcript, block: int) -> range:
    """The blocks on the page that begins with `block`."""
    return transcript.window(block, PAGE_BODIES - (0 if block else prefix_room(transcript)))


def navigation(transcript: Transcript) -> tuple[int, Hit | None]:
    """Search and paging; returns the opened block and the search hit that is looked at, if any."""
    find, where = st.columns([5, 4], vertical_alignment="bottom")
    words = find.text_input(
        "Search the whole trace",
        key="q",
        bind="query-params",
        type="search",
        placeholder="Search the whole trace",
        on_change=_go_to_hit,
        args=(transcript,),
        icon=":material/search:",
        label_visibility="collapsed",
    )
    hit = None
    if words:
        with st.container(horizontal=True, vertical_alignment="center"):
            hit = _hit_line(transcript, hits(transcript, words))
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
        after = page(transcript, block).stop
        before = transcript.window_before(block, PAGE_BODIES)
        for name, icon, target, known, letter in (
            ("Previous page", ":material/chevron_left:", before, block > 0, "k"),
            ("Next page", ":material/chevron_right:", after, after < count, "j"),
        ):
            st.button(icon, key=name, help=name, disabled=not known, on_click=open_block, args=(target,), shortcut=letter)
    return block, hit


def open_block(block: int) -> None:
    st.session_state["block"] = block


def _hit_line(transcript: Transcript, found: list[Hit]) -> Hit | None:
    """Which of the hits is looked at, and the way to its neighbours."""
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


def outline(transcript: Transcript) -> None:
    """All blocks as a list; a click opens one.

    The open one is not marked: a selection set from here comes back from the browser as a click and undoes the next one.
    """

    def opened() -> None:
        cells = st.session_state["outline"]["selection"]["cells"]
        if cells:
            open_block(int(cells[0][0]))

    st.markdown("**Outline**", help="Click a row to open its block. " + HINTS["marks"])
    rows = [
        {"Block": row["block"], "Tokens": short(int(row["tokens"])), "Marks": row["marks"], "Does": row["what"]}
        for row in transcript.outline()
    ]
    if not any(row["Marks"] for row in rows):
        rows = [{key: value for key, value in row.items() if key != "Marks"} for row in rows]
    st.dataframe(
        rows,
        hide_index=True,
        height=table_height(len(rows), most=OUTLINE_HEIGHT),
        key="outline",
        on_select=opened,
        selection_mode="single-cell",
        column_config={
            "Block": st.column_config.NumberColumn(width=50),
            "Tokens": st.column_config.TextColumn(width=60, alignment="right"),
        },
    )
