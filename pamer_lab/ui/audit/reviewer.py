"""Under which name the reader reviews: asked once, remembered by the browser, never in a link.

Once a name is entered its field goes away, so that the keys for verdicts are not typed into it.
"""

from pathlib import Path

import streamlit as st

from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS

NAME = "reviewing-as"
"""Session key of the name."""
NAME_CHARACTERS = 60
_memory = st.components.v2.component(
    "pamer_reviewer", js=(Path(__file__).parents[1] / "shared" / "assets" / "reviewer.js").read_text(encoding="utf-8")
)


def choose_reviewer() -> str:
    """The reviewer's name; empty until it is entered."""
    name = str(st.session_state.get(NAME, ""))
    forget = bool(st.session_state.pop("reviewer-forgotten", False))
    _memory(key="reviewer-memory", data={"name": name, "forget": forget}, width="content", on_remembered_change=_remembered)
    if name:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"You: {in_code(name, NAME_CHARACTERS)}", help=HINTS["reviewer"], width="content")
            st.button("Change", key="reviewer-change", type="tertiary", on_click=_forget)
    else:
        st.text_input(
            "Your name",
            key="reviewer",
            placeholder="type it and press Enter",
            help=HINTS["reviewer"],
            max_chars=NAME_CHARACTERS,
            on_change=lambda: _take(st.session_state["reviewer"]),
        )
    return name


def _take(name: object) -> None:
    if isinstance(name, str) and (clean := " ".join(name.split())[:NAME_CHARACTERS]):
        st.session_state[NAME] = clean


def _remembered() -> None:
    _take(st.session_state["reviewer-memory"].get("remembered"))


def _forget() -> None:
    st.session_state.pop(NAME, None)
    st.session_state["reviewer-forgotten"] = True
