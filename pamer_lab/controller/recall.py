"""The `Recaller` Protocol between a plan and recalled text, and PaMER's own recaller: the top summaries by cosine.

A recaller returns text and its source, never messages, and changes nothing. A failure is an error; an empty result means that nothing
needs to be recalled.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pamer_lab.controller.injection import Entry
from pamer_lab.controller.plan import Plan
from pamer_lab.decisions import Spent
from pamer_lab.errors import ModelError
from pamer_lab.memory import Memory
from pamer_lab.memory.records import Vector, usable
from pamer_lab.models.embedder import Embedder


@dataclass(frozen=True)
class Recalled:
    """What a recaller found."""

    entries: tuple[Entry, ...]
    reason: str
    """In words, for the decision."""
    memories: tuple[Memory, ...] = ()
    """Memories whose summaries are in the entries."""
    restored: tuple[int, ...] = ()
    """Steps whose raw blocks are in the entries."""
    restored_in_part: tuple[int, ...] = ()
    """Those of which the entries hold only an excerpt."""
    kind: str = "summary"
    """What an entry is called in the request."""
    spent: tuple[Spent, ...] = ()
    error: str = ""
    """What failed in addition to the recall, such as recording it; the request continues."""


class Recaller(Protocol):
    """Finds what stored memory has to say to a request."""

    def recall(self, plan: Plan) -> Recalled: ...


class TopSummaries:
    """The `k` summaries nearest to task and recent blocks."""

    def __init__(self, embedder: Embedder, *, k: int, query_characters: int) -> None:
        self._embedder = embedder
        self._k = k
        self._query_characters = query_characters

    def recall(self, plan: Plan) -> Recalled:
        query = embedded(self._embedder, plan.query(self._query_characters))
        found = plan.memory.nearest(query, self._k, embedding_model=self._embedder.name)
        chosen = tuple(sorted(found, key=lambda memory: memory.memory_id))
        entries = tuple(Entry(memory.memory_id, memory.summary, _steps(memory)) for memory in chosen)
        reason = f"recalled the {len(chosen)} nearest of {len(plan.memory.memories)} stored summaries"
        return Recalled(entries, reason, memories=chosen)


def embedded(embedder: Embedder, text: str) -> Vector:
    """One text's vector, after its shape and values were found right."""
    rows = np.asarray(embedder.embed([text]))
    if rows.shape != (1, embedder.dimensions):
        raise ModelError(f"{embedder.name} answered the shape {rows.shape}, not {(1, embedder.dimensions)}")
    vector: Vector = rows[0].astype(np.float32)
    if not usable(vector):
        raise ModelError(f"{embedder.name} answered a vector that is zero or not finite")
    return vector


def _steps(memory: Memory) -> str:
    return f"of steps {memory.steps[0]} to {memory.steps[-1]}"
