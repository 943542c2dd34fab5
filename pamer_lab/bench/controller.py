"""`bench controller`: what the controller adds to a turn, and the search over 100,000 memories against bare numpy.

The session has 256 turns and about 200,000 tokens. Features are cached: the probe and the embedder answer at once, so only
the controller and its store are measured. The search is exact; its ids are compared with brute force.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pamer_lab.blocks import MessageTokens
from pamer_lab.controller import FixedProbe, PamerController, Votes
from pamer_lab.controller.request import Chat
from pamer_lab.memory import CoveredBlock, MemoryDraft, MemoryStore, RawBlock
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.records import pack, seal
from pamer_lab.memory.schema import BLOCKS, MEMORIES, block_row, memory_row
from pamer_lab.models.embedder import HashingEmbedder, Matrix
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.storage import Database
from pamer_lab.trajectory.values import Message, Tool

HELP = "overhead per turn of the controller, and the search over 100,000 memories against numpy"
TURNS, TOKENS = 256, 200_000
MEMORIES_STORED, SESSIONS = 100_000, 1_000
DIMENSIONS = 384
WINDOW = 16
"""Half the number of turns in each window: those around turn 32, and the last ones up to turn 256."""
REPEATS = 15

Floats = npt.NDArray[np.float32]


class CachedEmbedder:
    """Caches every vector, as the feature cache does; the first pass, which fills it, is not measured."""

    def __init__(self) -> None:
        self._inner = HashingEmbedder(DIMENSIONS)
        self.name, self.dimensions = self._inner.name, DIMENSIONS
        self._known: dict[str, Matrix] = {}

    def embed(self, texts: Sequence[str]) -> Matrix:
        for text in texts:
            if text not in self._known:
                self._known[text] = self._inner.embed([text])
        return np.concatenate([self._known[text] for text in texts])


class PeriodicProbe(FixedProbe):
    """Votes for compression at every eighth call, like heads that see a session grow."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = 0

    def vote(self, messages: Sequence[Message], tools: Sequence[Tool], active_tokens: int) -> Votes:
        self._asked += 1
        return Votes(((1.0 if self._asked % 8 == 0 else -1.0),) * 5, (0.5,) * 5)


def run() -> tuple[dict[str, Any], dict[str, Any]]:
    turns = _turns()
    one = _search(sessions=1)
    many = _search(sessions=SESSIONS)
    ratios = {
        "median_ms_per_turn": turns["median_ms"],
        "turn256_vs_turn32": turns["late_ms"] / turns["early_ms"],
        "search_vs_numpy": max(one["ratio"], many["ratio"]),
        "same_ids": one["same_ids"] and many["same_ids"],
    }
    return ratios, {"turns": turns, "one_session": one, "one_of_1000_sessions": many}


def session(turns: int = TURNS, tokens: int = TOKENS, seed: int = 0) -> list[Chat]:
    """A deterministic session of about `tokens` tokens."""
    chance = random.Random(seed)  # noqa: S311
    vocabulary = [f"{chance.choice('bcdfgklmnprst')}{chance.choice('aeiou')}{chance.choice('lmnrst')}{number}" for number in range(400)]
    words = tokens // turns // 4
    messages: list[Chat] = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Find what is asked."}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "search", "arguments": f'{{"query": "item_{number}"}}'}}
        lines = [" ".join(chance.choices(vocabulary, k=12)) for _ in range(max(words // 12, 1))]
        messages.append({"role": "assistant", "content": f"I look for item_{number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "\n".join(lines)})
    return messages


def _turns() -> dict[str, Any]:
    """Time of each turn, the shorter of two passes after one that fills the embedding cache."""
    messages = session()
    counter = embedded_counter()
    embedder = CachedEmbedder()
    passes: list[list[float]] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            summariser = ExtractiveSummariser(counter)
            store = MemoryStore(Database(folder))
            pamer = PamerController(store, embedder, summariser, PeriodicProbe(), MessageTokens(counter))
            times, actions = [], []
            for turn in range(1, TURNS + 1):
                request = messages[: 2 + 2 * turn]
                began = time.perf_counter()
                _, decision = pamer.transform("bench", request)
                times.append((time.perf_counter() - began) * 1000)
                actions.append(decision.action)
            passes.append(times)
    best = [min(samples) for samples in zip(*passes[1:], strict=True)]
    early = [
        time
        for time, action in zip(best[32 - WINDOW : 32 + WINDOW], actions[32 - WINDOW : 32 + WINDOW], strict=True)
        if action != "compress"
    ]
    late = [time for time, action in zip(best[-2 * WINDOW :], actions[-2 * WINDOW :], strict=True) if action != "compress"]
    return {
        "tokens": decision.tokens_before,
        "median_ms": statistics.median(best),
        "early_ms": statistics.median(early),
        "late_ms": statistics.median(late),
        "slowest_ms": max(best),
        "actions": {name: actions.count(name) for name in sorted(set(actions))},
    }


def _search(sessions: int) -> dict[str, Any]:
    """The three nearest memories of one session: our search against brute force on the same vectors."""
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(MEMORIES_STORED, DIMENSIONS)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        _fill(Database(folder), vectors, sessions)
        store = MemoryStore(Database(folder))
        began = time.perf_counter()
        memory = store.load("session 0")
        loaded = time.perf_counter() - began
        own = vectors[::sessions]
        queries = chance.normal(size=(REPEATS, DIMENSIONS)).astype(np.float32)
        same = all(
            [entry.sequence for entry in memory.nearest(query, 3, embedding_model="bench")] == _brute(own, query).tolist()
            for query in queries
        )
        ours = _median(lambda query: memory.ranked(query, 3, embedding_model="bench"), queries)
        bare = _median(lambda query: _brute(own, query), queries)
        again = _median(lambda _: store.load("session 0"), queries)
    return {
        "vectors": len(own),
        "same_ids": same,
        "ratio": ours / bare,
        "ours_ms": ours * 1000,
        "numpy_ms": bare * 1000,
        "first_load_s": loaded,
        "load_again_ms": again * 1000,
    }


def _brute(vectors: Floats, query: Floats) -> npt.NDArray[np.int64]:
    scores = vectors @ query / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))
    return np.argsort(-scores, kind="stable")[:3]


def _fill(database: Database, vectors: Floats, sessions: int) -> None:
    """Store all memories in a few commits: the bench measures reading."""
    now = datetime.now(UTC)
    raw: RawBlock = pack([{"role": "assistant", "content": "shared"}])
    database.insert(BLOCKS, [block_row(raw, now)])
    for start in range(0, len(vectors), 20_000):
        rows = []
        for number in range(start, min(start + 20_000, len(vectors))):
            owner, sequence = number % sessions, number // sessions
            covered = (CoveredBlock(sequence, f"{number}:0", raw.raw_hash, "said it", 10),)
            draft = MemoryDraft(f"session {owner}", "a summary", vectors[number], covered, 3, "t", "s", "bench")
            rows.append(memory_row(seal(draft, sequence, now)))
        database.append(MEMORIES, pa.Table.from_pylist(rows, schema=MEMORIES.schema))


def _median(call: Callable[[Floats], Any], queries: Floats) -> float:
    times = []
    for query in queries:
        began = time.perf_counter()
        call(query)
        times.append(time.perf_counter() - began)
    return statistics.median(times)
