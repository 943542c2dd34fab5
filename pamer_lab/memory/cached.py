"""A process-wide cache of summaries and vectors, shared by policies that need the same one.

PaMER, PaMER+ and the ablations compress the same blocks and query memory with the same text, so a batch computes each answer once.
Invariant: a cached answer is used only for exactly the same input; its token cost is reported every time, because each policy alone would
have needed it.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from pamer_lab.bounded import Bounded
from pamer_lab.memory.summary import SourceBlock, Summariser, Summary
from pamer_lab.models.embedder import Embedder, Matrix

KEPT = 4096
"""Answers kept; the oldest leave first."""


class CachedSummariser:
    """A summariser that is asked the same thing once."""

    def __init__(self, inner: Summariser) -> None:
        self.name = inner.name
        self._inner = inner
        self._kept: Bounded[Hashable, Summary] = Bounded(KEPT)

    def summarise(self, task: str, blocks: Sequence[SourceBlock]) -> Summary:
        key = (task, tuple((block.step, block.messages) for block in blocks))
        return self._kept.one(key, lambda: self._inner.summarise(task, blocks))


class CachedEmbedder:
    """An embedder that is asked the same thing once."""

    def __init__(self, inner: Embedder) -> None:
        self.name, self.dimensions = inner.name, inner.dimensions
        self._inner = inner
        self._kept: Bounded[str, Matrix] = Bounded(KEPT)

    def embed(self, texts: Sequence[str]) -> Matrix:
        rows = [self._kept.one(text, lambda text=text: self._inner.embed([text])) for text in texts]  # type: ignore[misc]
        return np.concatenate(rows) if rows else self._inner.embed([])
