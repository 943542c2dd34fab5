"""Charts follow a theme that is switched while the page is open.

Charts get their colours here, from the theme the browser named with its last request; switching the theme asks for nothing. A component
without a face compares the two in the browser and asks for a rerun where they differ.
"""

from pathlib import Path

import streamlit as st

from pamer_lab.ui.theme import is_dark

_watch = st.components.v2.component("pamer_theme", js=(Path(__file__).parent / "assets" / "theme.js").read_text(encoding="utf-8"))


def watch_theme() -> None:
    """Once a page, outside all parts: the whole page is drawn anew."""
    _watch(key="theme-watch", data={"dark": is_dark()}, width="content", on_switched_change=lambda: None)
