"""A diff of two lists of lines or words, in bounded time for any text.

`difflib` takes minutes for a few thousand lines of which most are equal. Here its search counts the pairs it looks at, and when the budget
is used up, what is left is shown as replaced. Invariant: at most `MOST_PAIRS` pairs are looked at.
"""

from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

MOST_PAIRS = 5_000_000
"""Takes about a second."""


class Limited(SequenceMatcher[str]):
    """A matcher with a budget."""

    a: Sequence[str]
    b2j: dict[str, list[int]]
    """Places of each entry in the second list; set by `difflib`."""

    def __init__(self, one: Sequence[str], other: Sequence[str], *, autojunk: bool) -> None:
        super().__init__(None, one, other, autojunk=autojunk)
        self.left = MOST_PAIRS
        pairs = (1 + len(self.b2j.get(entry, ())) for entry in one)
        self._before = list(accumulate(pairs, initial=0))
        """Pairs of equal entries that begin before each place of the first list."""

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        self.left -= self._before[len(self.a) if ahi is None else ahi] - self._before[alo]
        return super().find_longest_match(alo, ahi, blo, bhi) if self.left >= 0 else Match(alo, blo, 0)


def opcodes(one: Sequence[str], other: Sequence[str], *, autojunk: bool = False) -> list[tuple[str, int, int, int, int]]:
    """Like `SequenceMatcher.get_opcodes`, within the budget."""
    return list(Limited(one, other, autojunk=autojunk).get_opcodes())
