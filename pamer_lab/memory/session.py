"""One session's memory at one moment: its valid memories, what they cover, and the exact nearest-summary search.

A pure value, derived from memory rows alone. `discarded` says which stored memories were left out and why.
Invariant: no block is covered twice; the search gives the same ids as brute force.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import StorageError
from pamer_lab.memory.records import Memory, Vector, usable

FEW = 4_096
"""Up to this many memories, all are scored in double precision at once."""
DECIMALS = 12
"""Decimals of a cosine that count: beyond them, equal vectors differ by how the product was summed."""
MARGIN = 32
"""Candidates beyond `k` that are scored again in double precision, so that rounding never changes the order."""


@dataclass(frozen=True)
class SessionMemory:
    """What a session remembers."""

    session_id: str
    memories: tuple[Memory, ...] = ()
    """Valid memories in storage order."""
    discarded: tuple[str, ...] = ()
    """Stored memories that are damaged and ignored, each with the reason."""
    next_sequence: int = 0
    """The number the next memory takes; damaged memories keep theirs."""
    unreadable: bool = False
    """Whether the tables could not be read: the memory then counts as empty, and nothing can be stored on top of it."""
    _unit: npt.NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    _exact: npt.NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    _covered: dict[str, Memory] | None = field(default=None, compare=False, repr=False)
    """Carried over from the state before the newest memory, so that nothing is computed twice."""

    @cached_property
    def covered(self) -> dict[str, Memory]:
        """Block identity -> the one memory that covers it."""
        if self._covered is not None:
            return self._covered
        return {block.block_id: memory for memory in self.memories for block in memory.blocks}

    @cached_property
    def by_id(self) -> dict[str, Memory]:
        return {memory.memory_id: memory for memory in self.memories}

    @cached_property
    def embedding_models(self) -> frozenset[str]:
        return frozenset(memory.embedding_model for memory in self.memories)

    @cached_property
    def unit_vectors(self) -> npt.NDArray[np.float32]:
        """Unit-length summary vectors, one row per memory."""  # (memories, dimensions)
        return self._unit if self._unit is not None else _unit_rows([memory.vector for memory in self.memories])

    @cached_property
    def _exact_units(self) -> npt.NDArray[np.float64]:
        """Unit vectors in double precision, one row per memory."""
        if self._exact is not None:
            return self._exact
        return _exact_rows([memory.vector for memory in self.memories])

    def with_memory(self, memory: Memory) -> "SessionMemory":
        """This memory after one more was stored."""
        few = len(self.memories) < FEW
        row = [memory.vector]
        return SessionMemory(
            self.session_id,
            (*self.memories, memory),
            self.discarded,
            memory.sequence + 1,
            _unit=None if few else np.vstack([self.unit_vectors, _unit_rows(row)]),
            _exact=np.vstack([self._exact_units, _exact_rows(row)]) if few and self._same_size(memory) else None,
            _covered=self.covered | {block.block_id: memory for block in memory.blocks},
        )

    def _same_size(self, memory: Memory) -> bool:
        return bool(self.memories) and self.memories[0].vector.size == memory.vector.size

    def nearest(self, query: Vector, k: int, *, embedding_model: str) -> list[Memory]:
        """The `k` memories with the highest cosine to the query, best first; equal scores in storage order."""
        return [self.memories[index] for index, _ in self.ranked(query, k, embedding_model=embedding_model)]

    def ranked(self, query: Vector, k: int, *, embedding_model: str) -> list[tuple[int, float]]:
        """(place in `memories`, cosine) of the `k` nearest, best first."""
        if not self.memories or k < 1:
            return []
        self._check(query, embedding_model)
        if len(self.memories) <= FEW:
            wide = query.astype(np.float64)
            all_scores = np.round(self._exact_units @ (wide / np.sqrt(wide @ wide)), DECIMALS)
            order = np.argsort(-all_scores, kind="stable")[:k]
            return [(int(index), float(all_scores[index])) for index in order]
        unit = self.unit_vectors
        scores = unit @ np.asarray(query / np.linalg.norm(query), dtype=np.float32)  # (memories,)
        wanted = min(k + MARGIN, len(scores))
        candidates = np.argpartition(-scores, wanted - 1)[:wanted]
        exact = _cosines([self.memories[index].vector for index in candidates], query)
        order = np.lexsort((candidates, -exact))[:k]
        return [(int(candidates[place]), float(exact[place])) for place in order]

    def _check(self, query: Vector, embedding_model: str) -> None:
        if not usable(query):
            raise StorageError("the query vector is empty, zero or not finite")
        if others := self.embedding_models - {embedding_model}:
            raise StorageError(
                f"this session's memories were embedded with {min(others)!r} and the query with {embedding_model!r}; "
                "use the embedder the session started with"
            )
        if self.memories[0].vector.size != query.size:
            raise StorageError(f"the query vector has {query.size} dimensions, the stored vectors have {self.memories[0].vector.size}")


def assemble(session_id: str, stored: Iterable[Memory], archived: "set[str] | None" = None) -> SessionMemory:
    """The session's memory from its stored rows; damaged rows are left out, with the reason.

    `archived` holds the hashes of the raw blocks that exist; None skips that check.
    """
    sound: list[Memory] = []
    discarded: list[str] = []
    covered: set[str] = set()
    taken: set[int] = set()
    following = 0
    for memory in stored:
        following = max(following, memory.sequence + 1)
        reasons = memory.faults()
        if memory.session_id != session_id:
            reasons.append("belongs to another session")
        if memory.sequence in taken:
            reasons.append("has the number of another memory")
        if covered & {block.block_id for block in memory.blocks}:
            reasons.append("covers a block that an earlier memory covers")
        if archived is not None and (missing := sum(block.raw_hash not in archived for block in memory.blocks)):
            reasons.append(f"{missing} of its raw blocks are missing")
        if sound and memory.vector.size != sound[0].vector.size:
            reasons.append("its vector has another size than the session's")
        if reasons:
            discarded.append(f"{memory.memory_id or 'a memory without id'}: {'; '.join(reasons)}")
            continue
        taken.add(memory.sequence)
        covered.update(block.block_id for block in memory.blocks)
        sound.append(memory)
    return SessionMemory(session_id, tuple(sound), tuple(discarded), following)


def _unit_rows(vectors: Sequence[Vector]) -> npt.NDArray[np.float32]:
    matrix = np.stack(vectors).astype(np.float32, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    unit: npt.NDArray[np.float32] = (matrix / lengths[:, None]).astype(np.float32)
    return unit


def _exact_rows(vectors: Sequence[Vector]) -> npt.NDArray[np.float64]:
    matrix = np.stack(vectors).astype(np.float64)
    unit: npt.NDArray[np.float64] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit


def _cosines(vectors: Sequence[Vector], query: Vector) -> npt.NDArray[np.float64]:
    matrix = np.stack(vectors).astype(np.float64)
    wide = query.astype(np.float64)
    scores: npt.NDArray[np.float64] = np.round(matrix @ wide / (np.linalg.norm(matrix, axis=1) * np.linalg.norm(wide)), DECIMALS)
    return scores
