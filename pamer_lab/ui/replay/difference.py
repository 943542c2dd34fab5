"""Two texts as one, word by word: what both have, what only the first has, what only the second has.

Pure; knows nothing of Streamlit. Each stretch is a line that begins with a space, `-` or `+`, as a `diff` has it. What always holds:
the result is bounded, whatever the texts are, and every unseen character in it is made visible.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

from pamer_lab.figures.text import visible

MOST_WORDS = 4_000
"""Words of each text that are compared."""
MOST_LINES = 200
LONGEST = 40
"""Words of one stretch that are shown; a longer one keeps its beginning and end."""


def difference(first: str, second: str) -> str:
    """The texts as stretches, one to a line; says at its end where either was cut."""
    one, other = first.split(maxsplit=MOST_WORDS), second.split(maxsplit=MOST_WORDS)
    cut = len(one) > MOST_WORDS or len(other) > MOST_WORDS
    one, other = one[:MOST_WORDS], other[:MOST_WORDS]
    lines: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, one, other).get_opcodes():
        if kind == "equal":
            lines.append("  " + _stretch(one[a:b]))
            continue
        lines += ["- " + _stretch(one[a:b])] * (b > a)
        lines += ["+ " + _stretch(other[c:d])] * (d > c)
    if cut or len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "  … and so on; both texts are longer than what is compared here"]
    return "\n".join(lines)


def _stretch(words: Sequence[str]) -> str:
    if len(words) > LONGEST:
        half = LONGEST // 2
        words = [*words[:half], f"… {len(words) - 2 * half:,} words …", *words[-half:]]
    return visible(" ".join(word if len(word) <= 200 else f"{word[:199]}…" for word in words))
