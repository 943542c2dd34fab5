"""What every page listens to: `?` opens the list of keys, and `at` in a link names the part of the page to scroll into view."""

from pathlib import Path

import streamlit as st

KEYS = {
    "J": "Next: turn on Replay, page of blocks on Transcript, selection on Evidence audit",
    "K": "Previous turn, page of blocks or selection",
    "Shift+J": "Next event on Replay",
    "Shift+K": "Previous event on Replay",
    "1 2 3 4": "Verdict on Evidence audit: right, missing evidence, unnecessary step, wrong step",
    "N": "Note on Evidence audit",
    "Tab, Enter": "Move between controls and press the one in focus; in a table, arrows move and Enter presses a button",
    "?": "This list",
}
"""All keys; each means the same on every page that has it."""
ALL_KEYS = "Press ? for a list of all keys."
"""Part of the help of every control that has a key."""
TARGET = "at"
"""Query parameter with the key of the container that a link points to."""

_component = st.components.v2.component("pamer_page", js=(Path(__file__).parent / "assets" / "page.js").read_text(encoding="utf-8"))


@st.dialog("Keys")
def _list_keys() -> None:
    st.table({"What it does": KEYS})  # its cells wrap; those of a dataframe are cut off
    st.caption("Keys do nothing while you type in a field.")


def page_keys() -> None:
    """Call once per page, outside all parts."""
    asked = _component(key="page-keys", data={"target": st.query_params.get(TARGET, "")}, width="content", on_asked_change=lambda: None)
    if asked.asked:
        _list_keys()
