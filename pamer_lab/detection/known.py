"""Secrets that were found once, found again where nothing around them gives them away: in a summary, a list of terms, an answer.

Each value is kept under one of its words, and a text is looked through once for all of them. Invariant: time grows like the text,
however many values are known.
"""

import re
from collections.abc import Iterator

from pamer_lab.detection.shapes import Kind
from pamer_lab.detection.views import views

WORD = re.compile(r"[A-Za-z0-9]+")
LEAST = 6
"""Characters of a value that is looked for elsewhere; one of letters alone could be any word."""

MOST_OF_A_WORD = 50
"""Values kept under one word; more of them are made to be slow."""


class Known:
    """Values by their longest word."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, tuple[int, Kind]]] = {}
        """Word -> value -> (where the word is in it, its kind)."""

    def add(self, secret: str, kind: Kind) -> None:
        for text in {secret, [*views(secret)][-1].text}:
            words = list(WORD.finditer(text))
            if len(text) < LEAST or text.isalpha() or not words:
                continue
            word = max(words, key=lambda match: len(match[0]))
            same = self._values.setdefault(word[0], {})
            if len(same) < MOST_OF_A_WORD:
                same.setdefault(text, (word.start(), kind))

    def places(self, text: str) -> Iterator[tuple[int, int, Kind]]:
        if not self._values:
            return
        for word in WORD.finditer(text):
            for value, (offset, kind) in self._values.get(word[0], {}).items():
                start = word.start() - offset
                if start >= 0 and text.startswith(value, start):
                    yield start, start + len(value), kind
