"""Finds known secrets again where no context gives them away: in a summary, a list of terms, an answer.

Each value is indexed by one of its words; a text is scanned once for all values, and for what a truncated text leaves of them.
Invariant: time is linear in the text, however many values are known.
"""

import re
from collections.abc import Iterator

from pamer_lab.detection.shapes import Kind
from pamer_lab.detection.views import views

WORD = re.compile(r"[A-Za-z0-9]+")
LEAST = 6
"""Minimum characters of a value that is looked for elsewhere; values of letters alone are not, since they could be any word."""
LEAST_LINE = 24
"""Minimum characters of a line of a longer secret, which a summary may show by itself."""
LEAST_WORD, LEAST_PIECE = 16, 12
"""Minimum characters of a word that is the secret part of a key (a list of names shows it without `glpat-`), and of the beginning or
end that a truncated text leaves of it."""
MOST_OF_A_WORD = 50
"""Maximum values per word; more would be an attempt to make the scan slow."""


class Known:
    """Values by their longest word."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, tuple[int, Kind]]] = {}
        """Word -> value -> (where the word is in it, its kind)."""
        self._cut: dict[str, dict[str, Kind]] = {}
        """First or last characters of a long word -> such words."""

    def add(self, secret: str, kind: Kind) -> None:
        complete = {secret, [*views(secret)][-1].text}
        lines = {line for every in complete for line in every.split() if len(line) >= LEAST_LINE}
        for text in complete | lines:
            words = list(WORD.finditer(text))
            if len(text) < LEAST or text.isalpha() or not words:
                continue
            word = max(words, key=lambda match: len(match[0]))
            self._keep(word[0], text, word.start(), kind)
            if word.start() == 0:
                for lost in "nrt":  # `\n` whose backslash is gone, or belongs to the text
                    self._keep(lost + word[0], lost + text, 0, kind)
            for long in (found[0] for found in words if len(found[0]) >= LEAST_WORD):
                if not long.isalpha() and not long.isdigit():
                    self._keep_pieces(long, kind)

    def _keep_pieces(self, word: str, kind: Kind) -> None:
        for piece in (word[:LEAST_PIECE], word[-LEAST_PIECE:]):
            same = self._cut.setdefault(piece, {})
            if len(same) < MOST_OF_A_WORD:
                same.setdefault(word, kind)

    def _keep(self, word: str, text: str, offset: int, kind: Kind) -> None:
        same = self._values.setdefault(word, {})
        if len(same) < MOST_OF_A_WORD:
            same.setdefault(text, (offset, kind))

    def places(self, text: str) -> Iterator[tuple[int, int, Kind]]:
        if not self._values:
            return
        for word in WORD.finditer(text):
            for value, (offset, kind) in self._values.get(word[0], {}).items():
                start = word.start() - offset
                if start >= 0 and text.startswith(value, start):
                    yield start, start + len(value), kind
            if len(word[0]) >= LEAST_PIECE:
                yield from self._pieces(word)

    def _pieces(self, word: re.Match[str]) -> Iterator[tuple[int, int, Kind]]:
        for edge in {word[0][:LEAST_PIECE], word[0][-LEAST_PIECE:]}:
            for value, kind in self._cut.get(edge, {}).items():
                if value.startswith(word[0]) or value.endswith(word[0]):
                    yield *word.span(), kind
