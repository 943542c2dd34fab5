"""Small downloads of what a page shows, scanned for secrets like every export.

They have no panel with choices, so keys, tokens and passwords are always replaced; the share file and the commands offer the choice. The
scan runs when the reader presses the button.
"""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pamer_lab.redaction import own_scan


def download(label: str, body: str | Callable[[], str], name: str, mime: str, *, key: str, quiet: bool = True) -> None:
    """A button that saves a text, given or made when it is asked for; `quiet` for one next to a chart or table."""
    st.download_button(
        label,
        partial(cleaned, body),
        name,
        mime,
        key=key,
        on_click="ignore",
        type="tertiary" if quiet else "secondary",
    )


def cleaned(body: str | Callable[[], str]) -> bytes:
    """The text as it is saved."""
    return own_scan("keys").clean(body if isinstance(body, str) else body(), "download").encode()
