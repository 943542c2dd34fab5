"""The conservation law over random sessions and random faults."""

import errno
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pamer_lab.blocks import EstimatedCounter, content_hash, cut, identities
from pamer_lab.controller import ControllerSettings, Votes, as_chat
from pamer_lab.controller.request import read_message
from pamer_lab.errors import ModelError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import check
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.records import unpack
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.storage import Database
from pamer_lab.trajectory.values import Message
from tests.controller.world import as_bytes, controller
from tests.strategies import block, texts

FAULTS = [*["none"] * 8, "probe", "summary", "embedding", "blocks", "memories", "load", "injection"]


class Faulty:
    """All parts of a controller at once; each does its work unless its name is the fault of the moment."""

    name = "faulty"
    dimensions = 64

    def __init__(self, chance: random.Random) -> None:
        self.fault = "none"
        self._chance = chance
        self._embedder = HashingEmbedder(64)
        self._summariser = ExtractiveSummariser(EstimatedCounter(), max_tokens=40)

    def vote(self, messages: Any, tools: Any, active_tokens: int) -> Votes:
        if self.fault == "probe":
            raise MemoryError("out of memory")
        return Votes(tuple(self._chance.uniform(-1, 2) for _ in range(5)), (0.5,) * 5)

    def summarise(self, task: str, blocks: Any, later: Any = ()) -> Any:
        if self.fault == "summary":
            raise ModelError("no usable answer after 8 attempts")
        return self._summariser.summarise(task, blocks, later)

    def embed(self, texts: Any) -> Any:
        return np.full((len(texts), 64), np.nan) if self.fault == "embedding" else self._embedder.embed(texts)


def _faulty_store(folder: Path, parts: Faulty, sessions_kept: int) -> MemoryStore:
    database = Database(folder)
    store = MemoryStore(database, sessions_kept=sessions_kept)
    insert, rows = database.insert, database.arrow

    def failing_insert(spec: Any, given: Any) -> Any:
        if {"blocks": "memory_blocks", "memories": "memories"}.get(parts.fault) == spec.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return insert(spec, given)

    def failing_arrow(spec: Any, **options: Any) -> Any:
        if parts.fault == "load":
            raise OSError(errno.EIO, "Input/output error")
        return rows(spec, **options)

    database.insert, database.arrow = failing_insert, failing_arrow  # type: ignore[method-assign]
    return store


def _conserved(messages: list[Message], chat: list[Any], returned: list[Any], folder: Path) -> None:
    """Every block is in the returned request, or covered by exactly one stored memory whose raw blocks are intact."""
    blocks = cut(messages).blocks
    store = MemoryStore(Database(folder))
    memory = store.load("s")
    archive = store.raw_blocks([covered.raw_hash for entry in memory.memories for covered in entry.blocks])
    kept = {id(item) for item in returned}
    for name, found in zip(identities(found.of(messages) for found in blocks), blocks, strict=True):
        covering = [covered for entry in memory.memories for covered in entry.blocks if covered.block_id == name]
        own = chat[found.start : found.end]
        assert len(covering) <= 1
        if covering:
            raw = unpack(archive[covering[0].raw_hash])
            assert raw == own
            assert content_hash([read_message(item, "") for item in raw]) == name.partition(":")[0]
        else:
            assert all(id(item) in kept for item in own)


@st.composite
def sessions(draw: Any) -> list[Message]:
    """Prefix and five to ten blocks with something to say, so that there is something to compress."""
    blocks = draw(st.lists(block(complete=False), min_size=5, max_size=10))
    said = [replace(message, content=f"{message.content} {'much was said here. ' * 8}") for messages in blocks for message in messages]
    return [Message("system", "be careful"), Message("user", draw(texts)), *said]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=sessions(), seed=st.integers(0, 2**32), data=st.data())
def test_every_block_is_active_or_covered_once_and_a_failure_returns_the_request_as_it_came(
    messages: list[Message], seed: int, data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("law")
    parts = Faulty(random.Random(seed))
    store = _faulty_store(folder, parts, data.draw(st.sampled_from([0, 2])))  # without kept sessions, every load can fail
    tight = ControllerSettings(minimum_candidate_tokens=1, vote=3)
    pamer = controller(folder, store=store, probe=parts, summariser=parts, embedder=parts, settings=tight)
    chat = [as_chat(message) for message in messages]
    ends = [*(found.start for found in cut(messages).blocks[1:]), len(messages)]
    for end in ends:
        parts.fault = data.draw(st.sampled_from(FAULTS))
        request = chat[:end]
        before = as_bytes(request)
        stored = len(MemoryStore(Database(folder)).load("s").memories)
        with pytest.MonkeyPatch.context() as patch:
            if parts.fault == "injection":
                patch.setattr("pamer_lab.controller.recall.message", lambda entries, kind: {"role": "tool", "content": "x"})
            returned, decision = pamer.transform("s", request)
        assert as_bytes(request) == before
        now = len(MemoryStore(Database(folder)).load("s").memories)
        assert now == stored + (decision.action == "compress")
        event(decision.action)
        if decision.action == "fallback":
            assert returned is request and decision.error
        assert len(decision.block_states) == decision.turn
        _conserved(messages[:end], chat, list(returned), folder)
    assert check(Database(folder)).clean
