"""Text and numbers for display: untrusted text without hidden characters or markup, and `12.4K` or `26.0 %`.

Invariant: `visible` changes only characters that a reader could not see, and replaces each by something that can be seen.
"""

import html
import math
import re

from pamer_lab.counts import counted as counted

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
    """The text escaped for plotly, which interprets `<b>` and `<a>` in labels and hover texts."""
    return html.escape(one_line(text, limit))


def short(value: float) -> str:
    """Thousands as `12.4K`, millions as `1.2M`; below a thousand the number itself."""
    size = abs(value)
    if size < 1_000:
        return f"{value:,.0f}"
    if size < 999_950:
        return f"{value / 1_000:.1f}K"
    return f"{value / 1_000_000:.1f}M"


def share(part: float, whole: float) -> str:
    """A share as `26.0 %`; `none` if the total is zero."""
    return f"{100 * part / whole:.1f} %" if whole else "none"


def duration(seconds: float) -> str:
    """`40 s`, `3 min`, `4.9 h`; never less than a second."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


APART = 1.25
"""Two times are given as a range if the longer is at least this many times the shorter."""


def time_range(least: float, seconds: float) -> str:
    """`about 40 s`; `20 s to 2 min` where other programs slow the machine down and may end; `under 1 s`."""
    if seconds < 1:
        return "under 1 s"
    low, high = duration(least), duration(seconds)
    if seconds < APART * least or low == high:
        return f"about {high}"
    low = low if least >= 1 else "1 s"
    return f"{low} to {high}, as other programs are using this machine"


def round_ticks(largest: float) -> list[float]:
    """Three to six round values from 0 up to `largest`, for an axis."""
    if largest <= 0:
        return [0]
    power = 10 ** math.floor(math.log10(largest))
    step = max(1, next(factor * power for factor in (0.2, 0.5, 1, 2) if largest / (factor * power) <= 5))
    return [number * step for number in range(int(largest / step) + 1)]


def layer_words(name: str) -> str:
    """A model's layer as people read it: `layer 17` for `block_17`, since a block is an agent's step here."""
    number = name.removeprefix("block_")
    return f"layer {number}" if number != name else "final layer" if name == "final" else name
