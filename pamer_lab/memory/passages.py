"""Splits a text into short passages: lines, long lines by sentence, and still longer ones (JSON on one line, logs) at separators.

`excerpt` keeps the passages of a long text that name the most for their length. Pure.
Invariant: passages are pieces of the text in order, none contains a line break or is longer than `PASSAGE_CHARACTERS`, and together they
leave out nothing but white space and text without a letter or digit.
"""

import re
from collections.abc import Iterator

from pamer_lab.memory.summary import LEFT_OUT
from pamer_lab.memory.terms import terms

PASSAGE_CHARACTERS = 240
"""Longest passage."""
SENTENCE_CHARACTERS = 100
"""A line longer than this is split into sentences."""
GOAL_WEIGHT = 4
"""Extra weight of a term of the goal in an excerpt, relative to other terms."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_SEPARATORS = (", ", "; ", ",", ";", "|", " ", "\t")
"""Where a long passage is cut: at the last occurrence, in its second half, of the first of these found there."""


def passages(text: str) -> Iterator[str]:
    """The passages of a text that have a letter or digit."""
    for line in text.splitlines():
        for sentence in _SENTENCE.split(line) if len(line) > SENTENCE_CHARACTERS else [line]:
            yield from (piece for piece in _pieces(sentence.strip()) if any(char.isalnum() for char in piece))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PASSAGE_CHARACTERS:
        end = _cut(text, start)
        yield text[start:end].strip()
        start = end
    yield text[start:].strip()


def _cut(text: str, start: int) -> int:
    half, end = start + PASSAGE_CHARACTERS // 2, start + PASSAGE_CHARACTERS
    for separator in _SEPARATORS:
        place = text.rfind(separator, half, end)
        if place >= 0:
            return place + len(separator)
    return end


def excerpt(text: str, goal: frozenset[str], characters: int) -> str:
    """Passages of a text in order, within about `characters`: those that name the most for their length, above all terms of the goal."""
    places: list[tuple[int, int, float]] = []
    end = 0
    for passage in passages(text):
        start = text.index(passage, end)
        end = start + len(passage)
        named = terms(passage)
        places.append((start, end, (len(named) + GOAL_WEIGHT * len(named & goal)) / (len(LEFT_OUT) + len(passage))))
    kept: list[tuple[int, int]] = []
    for start, end, _ in sorted(places, key=lambda place: (-place[2], place[0])):
        characters -= end - start + len(LEFT_OUT)
        if characters < 0:
            break
        kept.append((start, end))
    return _marked(text, sorted(kept))


def _marked(text: str, kept: list[tuple[int, int]]) -> str:
    """The kept pieces, with a mark between two of them where more than white space is left out."""
    parts: list[str] = []
    before = 0
    for start, end in kept:
        between = text[before:start]
        if parts:
            parts.append(LEFT_OUT.format(len(between)) if between.strip() else between)
        parts.append(text[start:end])
        before = end
    return "".join(parts)
