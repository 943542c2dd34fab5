"""The reader's theme: which colours charts get, and a rerun when it is switched while the page is open.

The server knows the theme that the browser named with its last request; switching it sends no request. A component that draws nothing
compares the two in the browser and asks for a rerun if they differ.
"""

from pathlib import Path

import streamlit as st

from pamer_lab.figures.theme import DARK, LIGHT, Meaning

_ASSETS = Path(__file__).parent / "assets"
_watch = st.components.v2.component(
    "pamer_theme",
    js=(_ASSETS / "theme.js").read_text(encoding="utf-8"),
    css=(_ASSETS / "theme.css").read_text(encoding="utf-8"),
    isolate_styles=False,  # the style is for the page's tables
)


def is_dark() -> bool:
    """Whether the reader's browser shows the dark theme; False if it has not said yet."""
    return st.context.theme.type == "dark"


def colours() -> dict[Meaning, str]:
    """The colours of the reader's theme."""
    return DARK if is_dark() else LIGHT


def watch_theme() -> None:
    """Call once per page, outside all parts: a switch redraws the complete page."""
    _watch(key="theme-watch", data={"dark": is_dark()}, width="content", on_switched_change=lambda: None)
