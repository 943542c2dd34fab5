"""Untrusted text in Markdown and in search results."""

import string

from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.ui.shared.text import excerpt, in_code


@given(st.text(alphabet=string.punctuation + "ab \n", min_size=1))
def test_a_code_span_cannot_be_closed_from_inside(text: str) -> None:
    span = in_code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(fence)
    assert fence not in span[len(fence) : -len(fence)]
    assert "\n" not in span


def test_an_excerpt_marks_the_hit_and_what_was_left_out() -> None:
    text = "a" * 300 + "HIT\n" + "b" * 300
    assert excerpt(text, 300, 303, around=3) == "…aaa⟦HIT⟧⏎bb…"
