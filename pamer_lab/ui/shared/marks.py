"""The open turn or block in charts, and clicks on them, without redrawing the charts.

A figure with its own mark would be built, sent and drawn again at every turn. Instead the figures stay, a component draws a line over them
in the browser and reports every click, including a second one on the same point. Charts are identified by their keys.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from pamer_lab.ui.shared.theme import colours

_component = st.components.v2.component("pamer_marks", js=(Path(__file__).parent / "assets" / "marks.js").read_text(encoding="utf-8"))


_reading = st.components.v2.component("pamer_reading", js=(Path(__file__).parent / "assets" / "reading.js").read_text(encoding="utf-8"))
_enter = st.components.v2.component("pamer_enter", js=(Path(__file__).parent / "assets" / "enter.js").read_text(encoding="utf-8"))
SCOPE = '[class*="st-key-block-"] code'
"""Where a search text is marked: the texts of blocks."""


@dataclass(frozen=True)
class Mark:
    """Where a chart is marked, in units of its horizontal axis."""

    at: float
    band: tuple[float, float] | None = None
    """The range that is on the page, drawn as a band; None draws none."""


@dataclass(frozen=True)
class Click:
    """A point that was clicked."""

    chart: str
    x: int
    line: str
    """Name of the line or row it belongs to; empty if it has none."""


def marks(places: Mapping[str, Mark], on_click: Callable[[Click], None], *, key: str) -> None:
    """Mark charts by key and report clicks on them; `on_click` runs before the next redraw."""

    def clicked() -> None:
        said = st.session_state[key].get("clicked")
        if said and isinstance(said.get("x"), int | float):
            on_click(Click(str(said.get("chart", "")), round(said["x"]), str(said.get("line", ""))))

    data = {"colour": colours()["chosen"], "marks": {chart: {"at": mark.at, "band": mark.band} for chart, mark in places.items()}}
    _component(key=key, data=data, width="content", on_clicked_change=clicked)


def mark_words(words: str, *, table: str, row: int, height: int, key: str) -> None:
    """Mark a search text in the blocks on the page, and keep a row of a table in view."""
    data = {"words": words, "scope": SCOPE, "colour": colours()["fallback"], "table": table, "row": row, "height": height}
    _reading(key=key, data=data, width="content")


def entered(table: str, *, key: str) -> dict[str, Any] | None:
    """The cell of a table on which Enter was pressed just now: its text (`cell`), its `row` as shown, and all `cells` of that row."""
    said = _enter(key=key, data={"table": table}, width="content", on_entered_change=lambda: None).entered
    return said if isinstance(said, dict) and isinstance(said.get("cells"), list) else None
