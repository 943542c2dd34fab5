"""The name under which the reader reviews: asked once, remembered by the browser, never in a link.

The field takes the place of the verdict buttons until a name is entered, so that no key gives a verdict while a name is typed.
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


def reviewing_as() -> str:
    """The reviewer's name with a button that changes it; empty, and nothing is shown, until a name is entered."""
    name = str(st.session_state.get(NAME, ""))
    forget = bool(st.session_state.pop("reviewer-forgotten", False))
    _memory(
        key="reviewer-memory",
        data={"name": name, "forget": forget},
        width="content",
        on_remembered_change=lambda: _take(st.session_state["reviewer-memory"].get("remembered")),
        on_entered_change=lambda: _take(st.session_state["reviewer-memory"].get("entered")),
        on_typed_change=_typed,
    )
    if name:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"You: {in_code(name, NAME_CHARACTERS)}", help=HINTS["reviewer"], width="content")
            st.button("Change", key="reviewer-change", type="tertiary", on_click=_forget)
    return name


def ask_name() -> None:
    """The field for the name; Enter, the button, or leaving the field takes it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Your name",
            key="reviewer",
            help=HINTS["reviewer"],
            max_chars=NAME_CHARACTERS,
            width=300,
            on_change=_take_field,
        )
        st.button("Start reviewing", key="reviewer-start", type="primary", on_click=_take_field)


def _take(name: object) -> None:
    if isinstance(name, str) and (clean := " ".join(name.split())[:NAME_CHARACTERS]):
        st.session_state[NAME] = clean


def _take_field() -> None:
    _take(st.session_state["reviewer"])


def _typed() -> None:
    """What was typed before a refresh goes back into the field."""
    text = st.session_state["reviewer-memory"].get("typed")
    if isinstance(text, str) and not st.session_state.get("reviewer"):
        st.session_state["reviewer"] = text[:NAME_CHARACTERS]


def _forget() -> None:
    st.session_state.pop(NAME, None)
    st.session_state["reviewer"] = ""  # else a press before the field has left the page would bring back what was typed
    st.session_state["reviewer-forgotten"] = True
