"""Small downloads of what a page shows, scanned for secrets like every export.

They offer no choices, so keys, tokens and passwords are always replaced; the share file and the commands let the user choose. The scan
runs when the reader presses the button, and for a long text in a separate process, so that no other visitor waits for it.
"""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pamer_lab.aside import SCAN_SECONDS, ask
from pamer_lab.redaction import clean_text

AT_ONCE = 50_000
"""Texts of up to this many characters are scanned in the page's process."""


def download(label: str, body: str | Callable[[], str], name: str, mime: str, *, key: str, quiet: bool = True) -> None:
    """A button that saves a text, given or made on demand; `quiet`: for a button next to a chart or table."""
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
    text = body if isinstance(body, str) else body()
    if len(text) <= AT_ONCE:
        return clean_text(text).encode()
    return ask("clean", [text], str, seconds=SCAN_SECONDS, what="Scanning the download for secrets").encode()
