"""The progress of background work, with a button that stops it: the same bar for replays and studies."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st

from pamer_lab.jobs import Work

Kind = TypeVar("Kind", bound=Work)

LOOK_EVERY = 1.0
"""Seconds between updates while work is running."""


def progress_bar(work: Work, text: str, *, key: str) -> None:
    """A bar with a line of text, and the button that stops the work; what is finished by then is kept."""
    if work.stopping.is_set():
        text = f"Stopping. {text}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(work.progress.share if work.progress else 0.0, text=text)
        st.button("Stop", key=key, icon=":material/stop:", on_click=work.stop, disabled=work.stopping.is_set())


def waiting_list(works: Sequence[Kind], words: Callable[[Kind], str]) -> None:
    """The queue behind the running work, including work from other tabs, each with a button that withdraws it."""
    for number, work in enumerate(works, 1):
        with st.container(horizontal=True, vertical_alignment="center", key=f"waiting-{number}"):
            st.markdown(f":material/hourglass: **Queued ({number} of {len(works)})**: {words(work)}", width="stretch")
            st.button("Withdraw", key=f"withdraw-{number}", icon=":material/close:", on_click=work.stop)
