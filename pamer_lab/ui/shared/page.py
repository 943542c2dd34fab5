"""Runs every page through the router and shows errors as sentences.

Until `st.navigation` is called, Streamlit treats a `pages/` folder as its older kind of app, so a link that is the first request of a
fresh server would open its page with the wrong menu and layout. `run` notices and runs the router first.
Invariant: the browser never gets a traceback of one of our own errors, not even from a fragment (`part`).
"""

import functools
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import streamlit as st

from pamer_lab.config import app_folder
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.ui.shared.charts import caption_pictures
from pamer_lab.ui.shared.keys import page_keys
from pamer_lab.ui.shared.state import drop_long_numbers, note_arrival
from pamer_lab.ui.shared.theme import watch_theme
from pamer_lab.ui.shared.widgets import sentences

ROUTER = app_folder() / "app.py"
ICON = Path(__file__).resolve().parents[1] / "icon.png"
"""A file of our own: Streamlit would fetch a Material page icon from the network."""
ROUTED = "routed"
"""Session key the router sets."""
DROPPED = "dropped"
"""Session key: numbers that were taken out of the URL."""

P = ParamSpec("P")
_history = st.components.v2.component("pamer_history", js=(Path(__file__).parent / "assets" / "history.js").read_text(encoding="utf-8"))


def run(main: Callable[[], None]) -> None:
    """Draw a page; each page ends with this call."""
    if not st.session_state.get(ROUTED):
        runpy.run_path(str(ROUTER), run_name="__main__")
        st.stop()
    if reviewer_mode():
        st.caption(":material/lock: Reviewer mode: everything is read-only, except reviews.")
    if dropped := drop_long_numbers():
        st.session_state[DROPPED] = dropped
        st.rerun()  # widgets take their values from the URL as it was when the run began
    if names := st.session_state.pop(DROPPED, ()):
        st.warning(f"This link contains a number that is too large ({', '.join(names)}); it was ignored.")
    note_arrival()
    with sentences():
        main()
    page_keys()
    _history(key="history", width="content")
    watch_theme()
    caption_pictures()


def part(draw: Callable[P, None]) -> Callable[P, None]:
    """A part of a page: a click inside it redraws only the part."""

    @st.fragment
    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
        with sentences():
            draw(*args, **kwargs)

    return drawn
