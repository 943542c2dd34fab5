"""A process-wide cache of summaries and vectors, shared by policies that need the same one.

PaMER, PaMER+ and the ablations compress the same blocks and query memory with the same text, so a batch computes each answer once.
Invariant: a cached answer is used only for exactly the same input; its token cost is reported every time, because each policy alone would
have needed it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from pamer_lab.memory.summary import SourceBlock, Summariser, Summary
from pamer_lab.models.embedder import Embedder, Matrix

KEPT = 4096
"""Answers kept; the oldest leave first."""

Value = TypeVar("Value")


class _Kept(Generic[Value]):
    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        if key not in self._values:
            self._values[key] = compute()
            while len(self._values) > KEPT:
                self._values.popitem(last=False)
        return self._values[key]


class CachedSummariser:
    """A summariser that is asked the same thing once."""

    def __init__(self, inner: Summariser) -> None:
        self.name = inner.name
        self._inner = inner
        self._kept: _Kept[Summary] = _Kept()

    def summarise(self, task: str, blocks: Sequence[SourceBlock]) -> Summary:
        key = (task, tuple((block.step, block.messages) for block in blocks))
        return self._kept.get(key, lambda: self._inner.summarise(task, blocks))


class CachedEmbedder:
    """An embedder that is asked the same thing once."""

    def __init__(self, inner: Embedder) -> None:
        self.name, self.dimensions = inner.name, inner.dimensions
        self._inner = inner
        self._kept: _Kept[Matrix] = _Kept()

    def embed(self, texts: Sequence[str]) -> Matrix:
        rows = [self._kept.get(text, lambda text=text: self._inner.embed([text])) for text in texts]  # type: ignore[misc]
        return np.concatenate(rows) if rows else self._inner.embed([])
