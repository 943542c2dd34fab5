"""A stranger's text made safe to look at: nothing hidden, nothing obeyed, nothing too long.

Pure functions; knows nothing of Streamlit. Trace text reaches the browser only through `st.code`, `st.text` and table
cells; where a label must be markdown it is quoted by `in_code`, and in plotly's pseudo-HTML by `in_figure`. What always
holds: `visible` changes only characters that a reader could not see, and each of them becomes something one can.
"""

import html
import re
from typing import get_args

from pamer_lab.blocks.tokens import CountKind

CAP = 2_000
"""Characters of a body that are shown before "show all"."""
DEMO = " Demo data."
"""Ends the caption of what stands on data that comes with the lab; a saved picture holds it."""
PIECE = 100_000
"""Characters of a body that "show all" puts on the page at a time."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control characters, ANSI's escape, direction marks and overrides, zero-width and tag characters, lone surrogates.
Joiners (U+200C, U+200D) stay: scripts and emoji need them."""

_PICTURES = 0x2400
_DELETE = 0x7F


def visible(text: str) -> str:
    """The text with every unseen character shown: control characters as their pictures, others by number."""
    return _UNSEEN.sub(_mark, text.replace("\r\n", "\n"))


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "\u2421" if code == _DELETE else f"\u27e8U+{code:04X}\u27e9"


def one_line(text: str, limit: int = 80) -> str:
    """The text's beginning on one line, for tables and hover texts."""
    head = " ".join(visible(text[: limit * 4]).split())
    return head if len(head) <= limit and len(text) <= limit * 4 else head[: limit - 1].rstrip() + "…"


def in_code(text: str, limit: int = 200) -> str:
    """The text as a markdown code span, in which neither links, images, directives nor emphasis exist."""
    shown = one_line(text, limit)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}" if shown else "` `"


def counted_with(kind: str, tokenizer: str) -> str:
    """`measured with SmolLM2`: how tokens were counted. Quoted, since a run that came as a file may name anything."""
    return f"{kind if kind in get_args(CountKind) else 'counted'} with {in_code(tokenizer, 60)}"


def in_figure(text: str, limit: int = 80) -> str:
    """The text for plotly, which reads `<b>` and `<a>` in labels and hover texts."""
    return html.escape(one_line(text, limit))


def excerpt(text: str, start: int, end: int, around: int = 120) -> str:
    """A search hit on one line, between double square brackets, with its surroundings."""
    before, hit, after = text[max(0, start - around) : start], text[start:end], text[end : end + around]
    head = "…" if start > around else ""
    tail = "…" if end + around < len(text) else ""
    return head + _flat(before) + "⟦" + _flat(hit) + "⟧" + _flat(after) + tail


def _flat(text: str) -> str:
    return visible(text).replace("\n", "⏎").replace("\t", " ")
