"""How every page runs: through the router, and with errors as sentences.

Streamlit takes a `pages/` folder for its older kind of app until `st.navigation` was called once. A link that is the
first request of a fresh server would therefore open its page without the router: wrong menu, wrong layout. `run` notices
and lets the router run first. What always holds: no traceback of the lab's own errors reaches the browser.
"""

import runpy
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from pamer_lab.access import reviewer_mode
from pamer_lab.ui.widgets import sentences

ROUTER = Path(__file__).resolve().parents[2] / "app.py"
ROUTED = "routed"
"""Session key the router sets."""


def run(main: Callable[[], None]) -> None:
    """Draw a page; each page ends with this call."""
    if not st.session_state.get(ROUTED):
        runpy.run_path(str(ROUTER))
        st.stop()
    if reviewer_mode():
        st.caption(":material/lock: Reviewer mode: everything can be read; only reviews can be written.")
    with sentences():
        main()
