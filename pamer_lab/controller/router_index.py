"""What a session's covered steps speak of, laid out so that a question costs what it touches.

Knows terms, texts and places; what they are worth to a request is the router's business. A step's place is its number among the
covered steps, in the order of storing. What always holds: memories are only added, so an index is extended, never rewritten;
one of other memories is another index.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pamer_lab.controller.terms import BlockTerms
from pamer_lab.memory import CoveredBlock, Memory

Vectors = npt.NDArray[np.float32]
EDGE = "\n"
"""Stands between the detail lines; no term holds a line end, so none is found across it."""


class StepIndex:
    """The covered steps of one session."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []
        self.blocks: list[CoveredBlock] = []
        self.owners: list[str] = []
        """Per place: the memory that covers the step."""
        self.terms: list[BlockTerms] = []
        self.brought: list[frozenset[str]] = []
        """Per place: terms of the answer that the agent had not named itself."""
        self.speaking: dict[str, list[int]] = {}
        """Term -> places of the steps that ask for it or answer with it."""
        self.looked_at: set[str] = set()
        """Every term that the agent named in some step."""
        self.said: dict[int, frozenset[str]] = {}
        """Step number -> what the agent named there."""
        self._details = ""
        self._starts: list[int] = []
        self._texts: list[Vectors] = []
        self._detail: list[Vectors] = []
        self._matrices: tuple[Vectors, Vectors] | None = None

    def begins(self, memories: Sequence[Memory]) -> bool:
        """Are the indexed memories the first of these?"""
        known = self.memories
        return len(known) <= len(memories) and all(_same(old, new) for old, new in zip(known, memories, strict=False))

    def add(self, memory: Memory, terms: Sequence[BlockTerms], texts: Sequence[Vectors], details: Sequence[Vectors]) -> None:
        """One more memory, with the terms and vectors of its blocks."""
        self.memories.append(memory)
        for block, found in zip(memory.blocks, terms, strict=True):
            place = len(self.blocks)
            self.blocks.append(block)
            self.owners.append(memory.memory_id)
            self.terms.append(found)
            self.brought.append(found.answered - found.asked)
            self.said[block.step] = found.asked
            self.looked_at |= found.asked
            for term in found.all:
                self.speaking.setdefault(term, []).append(place)
            self._starts.append(len(self._details))
            self._details += block.detail.lower() + EDGE
        self._texts.extend(texts)
        self._detail.extend(details)
        self._matrices = None

    def detailed(self, term: str) -> Iterator[int]:
        """Places of the steps whose detail line holds the term."""
        found = self._details.find(term)
        while found >= 0:
            place = bisect_right(self._starts, found) - 1
            yield place
            found = self._details.find(term, self._starts[place + 1]) if place + 1 < len(self._starts) else -1

    def likeness(self, vector: Vectors) -> npt.NDArray[np.float64]:
        """Per place, the better product of the vector with the step's text, as its source shows it, and with its detail."""  # (places,)
        if self._matrices is None:
            self._matrices = np.stack(self._texts), np.stack(self._detail)  # (places, dimensions) each
        text, detail = self._matrices
        better: npt.NDArray[np.float64] = np.maximum(text @ vector, detail @ vector).astype(np.float64)
        return better


def _same(one: Memory, other: Memory) -> bool:
    return one is other or (one.memory_id, one.checksum) == (other.memory_id, other.checksum)
