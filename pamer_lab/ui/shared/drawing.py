"""Figures that are built once: plotly's checks take ten times longer than all the rest of a rerun.

What always holds: a drawing is known by its name and by everything that it shows (`of`), so that a changed setting, run or theme is
another drawing; the cache is bounded and shared by all sessions; a drawing is never changed.
"""

from collections.abc import Callable
from typing import Any

import orjson
import streamlit as st
from plotly.basedatatypes import BaseFigure

from pamer_lab.figures.theme import Meaning
from pamer_lab.ui.shared.theme import colours, is_dark

MOST_DRAWINGS = 64
Build = Callable[[dict[Meaning, str]], Any]
"""Makes a plotly figure from the colours of a theme."""


class Drawing(BaseFigure):  # type: ignore[misc]  # plotly has no types
    """A figure that was checked when it was built, as plain values: plotly's own would be copied and searched at every use."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec

    def to_dict(self) -> dict[str, Any]:
        return self._spec


@st.cache_resource(max_entries=MOST_DRAWINGS, show_spinner=False)
def _drawing(name: str, of: Any, dark: bool, _build: Build) -> Drawing | None:
    figure = _build(colours())
    return None if figure is None else Drawing(orjson.loads(figure.to_json()))


def drawing_or_none(name: str, of: Any, build: Build) -> Drawing | None:
    """The figure that `build` makes from the theme's colours, if it makes one; `of` holds plain values and says all that it shows."""
    return _drawing(name, of, is_dark(), build)


def drawing(name: str, of: Any, build: Build) -> Drawing:
    """The figure of a `build` that always makes one."""
    found = drawing_or_none(name, of, build)
    assert found is not None, f"the chart {name!r} drew nothing"
    return found
