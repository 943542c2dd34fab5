"""Untrusted text made safe to show: no hidden characters, one line where one is asked for, no markup that plotly obeys.

Invariant: `visible` changes only characters that a reader could not see, and replaces each by something that can be seen.
"""

import html
import re

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


def in_figure(text: str, limit: int = 80) -> str:
    """The text for plotly, which reads `<b>` and `<a>` in labels and hover texts."""
    return html.escape(one_line(text, limit))
