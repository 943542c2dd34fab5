"""The values of the memory: one memory, the blocks it covers, the archived form of a block, and step details as a partition.

Knows neither tables nor models. Invariants: a memory without `faults` covers at least one block, each once, with one step detail per block;
its vector is finite and not zero; its checksum is the hash of everything else. `unpack(pack(messages)) == messages`, or `pack` raises; a
body that does not match its hash is never returned.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from pamer_lab.errors import StorageError

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class RawBlock:
    """One block's messages exactly as the caller sent them, under the hash of their bytes."""

    raw_hash: str
    """SHA-256 of `body`."""
    body: bytes
    """JSON list of the caller's messages."""


@dataclass(frozen=True)
class CoveredBlock:
    """One block, or step, that a memory covers."""

    step: int
    """Block number in the session's history; with an append-only history it never changes."""
    block_id: str
    """Block identity: hash of the canonical form, and occurrence number."""
    raw_hash: str
    """The raw block's key in the archive."""
    detail: str
    """One line on what happened in this step."""
    tokens: int
    """Tokens of the raw block."""


@dataclass(frozen=True)
class MemoryDraft:
    """A memory before it is stored."""

    session_id: str
    summary: str
    vector: Vector = field(compare=False)
    blocks: tuple[CoveredBlock, ...]
    summary_tokens: int
    tokenizer: str
    summary_model: str
    embedding_model: str


@dataclass(frozen=True)
class Memory:
    """One stored memory."""

    memory_id: str
    """Sorts in storage order; the same session replayed gives the same ids."""
    session_id: str
    sequence: int
    """Number of the memory within its session, from 0; only one writer can take a number."""
    summary: str
    vector: Vector = field(compare=False, repr=False)
    blocks: tuple[CoveredBlock, ...]
    summary_tokens: int
    tokenizer: str
    summary_model: str
    embedding_model: str
    created_at: datetime
    checksum: str

    @property
    def tokens(self) -> int:
        """Tokens of the covered blocks: what the summary replaced."""
        return sum(block.tokens for block in self.blocks)

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(block.step for block in self.blocks)

    def faults(self) -> list[str]:
        """What is wrong with this memory on its own, as sentences; empty for a valid one."""
        found: list[str] = []
        if not self.blocks:
            found.append("covers no block")
        for name, values in (("block", [block.block_id for block in self.blocks]), ("step", list(self.steps))):
            if len(set(values)) != len(values):
                found.append(f"covers a {name} twice")
        if list(self.steps) != sorted(self.steps) or any(step < 0 for step in self.steps):
            found.append("its steps are out of order")
        if any(not block.detail.strip() for block in self.blocks):
            found.append("a step has no detail")
        if not usable(self.vector):
            found.append("its vector is empty, zero or not finite")
        if self.checksum != checksum(self) or self.memory_id != memory_id(self):
            found.append("its checksum does not match")
        return found


def usable(vector: Vector) -> bool:
    """Whether cosine similarity is defined for the vector."""
    return vector.ndim == 1 and vector.size > 0 and bool(np.isfinite(vector).all()) and bool(np.any(vector))


def checksum(memory: "Memory") -> str:
    """SHA-256 over everything in a memory except its id and the checksum itself."""
    fields = [
        memory.session_id,
        memory.sequence,
        memory.summary,
        [[block.step, block.block_id, block.raw_hash, block.detail, block.tokens] for block in memory.blocks],
        [memory.summary_tokens, memory.tokenizer, memory.summary_model, memory.embedding_model],
        memory.created_at.isoformat(),
    ]
    digest = hashlib.sha256(orjson.dumps(fields))
    digest.update(np.ascontiguousarray(memory.vector, dtype="<f4").tobytes())
    return digest.hexdigest()


def memory_id(memory: "Memory") -> str:
    """Number, and a hash of session, number, summary and blocks; the time is left out, so that a replay gives its memories the same ids."""
    named = [memory.session_id, memory.sequence, memory.summary, [block.block_id for block in memory.blocks]]
    return f"m{memory.sequence:06d}-{hashlib.sha256(orjson.dumps(named)).hexdigest()[:12]}"


def seal(draft: MemoryDraft, sequence: int, created_at: datetime) -> Memory:
    """The memory a draft becomes at its place in the session."""
    bare = Memory(
        memory_id="",
        session_id=draft.session_id,
        sequence=sequence,
        summary=draft.summary,
        vector=np.array(draft.vector, dtype=np.float32),
        blocks=draft.blocks,
        summary_tokens=draft.summary_tokens,
        tokenizer=draft.tokenizer,
        summary_model=draft.summary_model,
        embedding_model=draft.embedding_model,
        created_at=created_at,
        checksum="",
    )
    return replace(bare, memory_id=memory_id(bare), checksum=checksum(bare))


def pack(messages: Sequence[dict[str, Any]]) -> RawBlock:
    """The archived form of one block."""
    try:
        body = json.dumps(list(messages), separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise StorageError(f"a block contains a value that JSON cannot represent ({error})") from error
    if json.loads(body) != list(messages):
        raise StorageError("a block changes when it is stored as JSON; only plain JSON values can be archived")
    return RawBlock(hashlib.sha256(body).hexdigest(), body)


def unpack(block: RawBlock) -> list[dict[str, Any]]:
    """The caller's messages, after checking the hash."""
    if not is_intact(block):
        raise StorageError(f"archived block {block.raw_hash[:12]} does not match its hash; run: pamer-lab memory check")
    messages: list[dict[str, Any]] = json.loads(block.body)
    return messages


def is_intact(block: RawBlock) -> bool:
    return hashlib.sha256(block.body).hexdigest() == block.raw_hash


def partition_faults(covered: Sequence[int], detailed: Sequence[int]) -> list[str]:
    """What keeps `detailed` from being a partition of `covered`, as sentences: gaps, overlaps, unknown steps, disorder."""
    found: list[str] = []
    counts, known = Counter(detailed), set(covered)
    if repeated := sorted(step for step, count in counts.items() if count > 1):
        found.append(f"overlap: more than one detail for {_listed(repeated)}")
    if missing := sorted(known - set(counts)):
        found.append(f"gap: no detail for {_listed(missing)}")
    if unknown := sorted(set(counts) - known):
        found.append(f"unknown: a detail for {_listed(unknown)}, which is not covered")
    if len(known) != len(covered):
        found.append("overlap: a step is covered twice")
    return found


def memory_faults(memories: Sequence[Memory]) -> list[str]:
    """What is wrong with the partitions of several memories of one session, as sentences."""
    found: list[str] = []
    owner: dict[int, str] = {}
    for memory in memories:
        found += [f"{memory.memory_id}: {fault}" for fault in memory.faults()]
        for step in memory.steps:
            if step in owner:
                found.append(f"overlap: step {step} belongs to {owner[step]} and to {memory.memory_id}")
            owner[step] = memory.memory_id
    return found


def _listed(steps: Sequence[int], most: int = 5) -> str:
    shown = ", ".join(str(step) for step in steps[:most])
    return f"step {shown}" + (f" and {len(steps) - most} more" if len(steps) > most else "")
