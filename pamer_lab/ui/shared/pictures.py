"""Saved pictures hold the words around their chart: question, answer, n, tokenizer, "demo" (`assets/picture.js`).

A component without a face, once a page. Charts are found by the frame that `show_chart` puts around each.
"""

from pathlib import Path

import streamlit as st

_words = st.components.v2.component("pamer_picture", js=(Path(__file__).parent / "assets" / "picture.js").read_text(encoding="utf-8"))


def frame(key: str) -> str:
    """The key of the frame around the chart with this key."""
    return f"shown-{key}"


def caption_pictures() -> None:
    """Once a page, outside all parts."""
    _words(key="picture-words", width="content")
