from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.errors import StorageError
from pamer_lab.memory import CoveredBlock, Memory, MemoryDraft
from pamer_lab.memory.records import seal
from pamer_lab.memory.session import MARGIN, SessionMemory, assemble


def memory(sequence: int, vector: object, *, block: str = "") -> Memory:
    name = block or f"block-{sequence}:0"
    covered = (CoveredBlock(sequence, name, f"raw-{name}", "did it", 10),)
    draft = MemoryDraft("s", "text", np.asarray(vector, dtype=np.float32), covered, 1, "t", "s", "e")
    return seal(draft, sequence, datetime(2026, 1, 1, tzinfo=UTC))


def brute_force(vectors: np.ndarray, query: np.ndarray, k: int) -> list[int]:
    wide = vectors.astype(np.float64)
    scores = np.round(wide @ query / (np.linalg.norm(wide, axis=1) * np.linalg.norm(query)), 12)
    return [int(index) for index in np.lexsort((np.arange(len(scores)), -scores))[:k]]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 300), k=st.integers(1, 8))
def test_the_nearest_are_those_of_brute_force_also_among_near_equals(seed: int, count: int, k: int) -> None:
    chance = np.random.default_rng(seed)
    base = chance.normal(size=(1, 24))
    vectors = (base + chance.normal(size=(count, 24)) * chance.choice([1e-6, 1e-3, 1.0])).astype(np.float32)
    vectors[chance.integers(count)] = vectors[chance.integers(count)]
    session = assemble("s", [memory(number, row) for number, row in enumerate(vectors)])
    query = chance.normal(size=24).astype(np.float32)
    assert [place for place, _ in session.ranked(query, k, embedding_model="e")] == brute_force(vectors, query.astype(np.float64), k)


def test_a_memory_more_is_found_like_the_others() -> None:
    session = SessionMemory("s")
    for number in range(5):
        session = session.with_memory(memory(number, np.eye(5)[number]))
        session.nearest(np.ones(5, dtype=np.float32), 3, embedding_model="e")
    found = session.nearest(np.array([0, 0, 0, 1, 0.5], dtype=np.float32), 2, embedding_model="e")
    assert [entry.sequence for entry in found] == [3, 4]


def test_damaged_memories_are_left_out_with_the_reason_and_keep_their_number() -> None:
    sound, doubled, same = memory(0, [1, 0]), memory(0, [0, 1]), memory(2, [1, 1], block="block-0:0")
    short, lost = memory(3, [1, 0, 0]), memory(4, [1, 2])
    archived = {f"raw-block-{number}:0" for number in range(4)}
    session = assemble("s", [sound, doubled, same, short, lost], archived)
    assert session.memories == (sound,) and session.next_sequence == 5
    reasons = [line.partition(": ")[2] for line in session.discarded]
    assert len(set(reasons)) == 4 and all(reasons)


def test_a_query_that_cannot_be_compared_is_refused() -> None:
    session = assemble("s", [memory(0, [1, 0])])
    for query, model in (([1, 0, 0], "e"), ([0, 0], "e"), ([np.nan, 1], "e"), ([1, 0], "other")):
        with pytest.raises(StorageError):
            session.nearest(np.asarray(query, dtype=np.float32), 1, embedding_model=model)


class Counted(tuple[Memory, ...]):
    """Counts how many memories are looked at one by one."""

    looked_at = 0

    def __getitem__(self, place: Any) -> Any:
        Counted.looked_at += 1
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[Memory]:
        Counted.looked_at += len(self)
        return super().__iter__()


def test_searching_many_memories_looks_at_few_of_them_beyond_the_bare_product() -> None:
    vectors = np.random.default_rng(0).normal(size=(20_000, 128)).astype(np.float32)
    template = memory(0, vectors[0])
    entries = tuple(template if not number else Memory(**{**template.__dict__, "vector": row}) for number, row in enumerate(vectors))
    session = SessionMemory("s", Counted(entries))
    query = vectors[77]
    session.ranked(query, 3, embedding_model="e")
    assert Counted.looked_at >= len(entries), "the first search lays the vectors out"
    Counted.looked_at = 0
    found = session.ranked(query, 3, embedding_model="e")
    assert [place for place, _ in found] == np.argsort(-(vectors @ query) / np.linalg.norm(vectors, axis=1))[:3].tolist()
    assert 3 <= Counted.looked_at <= 3 + MARGIN + 1
