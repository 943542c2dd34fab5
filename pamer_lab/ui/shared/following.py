"""The progress of work that runs beside the page, with a way to stop it: the same bar for replays and studies."""

import streamlit as st

from pamer_lab.jobs import Work

LOOK_EVERY = 1.0
"""Seconds between two looks at work that runs."""


def progress_bar(work: Work, text: str, *, key: str) -> None:
    """A bar with a line of text, and the button that stops the work."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(work.progress.share if work.progress else 0.0, text=text)
        st.button("Stop", key=key, icon=":material/stop:", on_click=work.stop, disabled=work.stopping.is_set())
