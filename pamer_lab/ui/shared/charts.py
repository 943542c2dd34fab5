"""Shows charts: a title above, a caption below, and the data as CSV. Figures are built once.

Plotly's checks take ten times longer than the rest of a rerun, so figures are cached. A saved picture includes the words around its chart:
`assets/picture.js` finds a chart by the frame that `show_chart` puts around it.
Invariant: a drawing is identified by its name and everything it shows (`of`), so that a changed setting, run or theme is another drawing;
the cache is bounded and shared by all sessions; a drawing is never changed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import streamlit as st
from plotly.basedatatypes import BaseFigure

from pamer_lab.figures.theme import CONFIG, Meaning
from pamer_lab.ui.shared.downloads import download
from pamer_lab.ui.shared.theme import colours, is_dark

MOST_DRAWINGS = 64
PICTURE = "picture-format"
"""Session key: the format in which charts are saved."""
PICTURES = ("svg", "png")
Build = Callable[[dict[Meaning, str]], Any]
"""Makes a plotly figure from the colours of a theme."""

_words = st.components.v2.component("pamer_picture", js=(Path(__file__).parent / "assets" / "picture.js").read_text(encoding="utf-8"))


class Drawing(BaseFigure):  # type: ignore[misc]  # plotly has no types
    """A figure as plain values, checked when it was built; plotly's own class would be copied and searched at every use."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec

    def to_dict(self) -> dict[str, Any]:
        return self._spec


@st.cache_resource(max_entries=MOST_DRAWINGS, show_spinner=False)
def _drawing(name: str, of: Any, dark: bool, _build: Build) -> Drawing | None:
    figure = _build(colours())
    return None if figure is None else Drawing(orjson.loads(figure.to_json()))


def drawing_or_none(name: str, of: Any, build: Build) -> Drawing | None:
    """The figure that `build` makes from the theme's colours, if it makes one; `of`: plain values that identify all it shows."""
    return _drawing(name, of, is_dark(), build)


def drawing(name: str, of: Any, build: Build) -> Drawing:
    """The same for a `build` that always makes a figure."""
    found = drawing_or_none(name, of, build)
    assert found is not None, f"the chart {name!r} drew nothing"
    return found


def show_chart(
    question: str,
    figure: Drawing,
    answer: str,
    *,
    key: str,
    hint: str = "",
    on_click: Callable[[], None] | None = None,
    csv: Callable[[], str] | None = None,
) -> None:
    """A chart with its title above and its caption below, which a saved picture includes too; `csv` makes its table."""
    with st.container(key=_frame(key)):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{question}**", help=hint or None, width="stretch")
            if csv:
                download("CSV", csv, f"{key}.csv", "text/csv", key=f"{key}-csv")
        config = CONFIG | {"toImageButtonOptions": {"format": picture_format(), "filename": key}}
        # The answer is not part of `alt`: it may change with the turn, and with another `alt` it would be another chart.
        st.plotly_chart(figure, key=key, config=config, on_select=on_click or "ignore", selection_mode="points", alt=question)
        st.caption(answer)


def picture_format() -> str:
    """The format that the camera above a chart saves; chosen in the Share dialog."""
    return str(st.session_state.get(PICTURE, PICTURES[0]))


def _frame(key: str) -> str:
    """The key of the frame around the chart with this key."""
    return f"shown-{key}"


def caption_pictures() -> None:
    """Include the words around charts in saved pictures; call once per page, outside all parts."""
    _words(key="picture-words", width="content")
