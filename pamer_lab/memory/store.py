"""The memory in LanceDB: how a compression is committed, and how a session's memory is read back.

Commit protocol. One compression is two LanceDB commits, in this order:

1. the raw blocks, inserted under the hash of their bytes (a known block adds nothing);
2. the memory row, inserted under (session, number): the next free number in the state that the writer read.

Only the second commits the compression. A crash before it leaves at most raw blocks that no memory names: orphans,
which are harmless and which `check` finds. After it everything the row names already exists. If two processes
compress the same session at once, both ask for the same number; LanceDB gives it to one of them, and the other gets
`LostRaceError`, reads the new state and decides again. So a session's memories form one sequence, each written with
knowledge of all before it, and no block is covered twice.

Reading derives the session's memory from its rows alone and leaves damaged ones out. A session's state is cached in
this process together with the table version it was read at; as long as the version is the same, nothing is read again.
Works at any URI that LanceDB supports: there are no file locks or renames of our own.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pamer_lab.bounded import Bounded
from pamer_lab.errors import StorageError
from pamer_lab.memory.records import Memory, MemoryDraft, RawBlock, is_intact, seal
from pamer_lab.memory.schema import BLOCKS, MEMORIES, block_row, memories_of, memory_row
from pamer_lab.memory.session import SessionMemory, assemble
from pamer_lab.storage import Database, equals, is_in

MANY = 400
"""With at least this many hashes, the archive's hash column is read completely instead of filtered."""


class LostRaceError(StorageError):
    """Raised when another process stored a memory of this session first; read the new state and decide again."""


@dataclass(frozen=True)
class _Kept:
    version: int
    memory: SessionMemory


class Memories(Protocol):
    """What a controller needs from a memory store."""

    @property
    def version(self) -> int:
        """Version of the memory table."""
        ...

    def load(self, session_id: str) -> SessionMemory:
        """The session's memory as of now."""
        ...

    def commit(self, draft: MemoryDraft, raw_blocks: Sequence[RawBlock], seen: SessionMemory) -> Memory:
        """Store one memory on top of the state the caller saw; `LostRaceError` if that state is no longer the newest."""
        ...

    def raw_blocks(self, hashes: Sequence[str]) -> dict[str, RawBlock]:
        """Archived blocks by hash; a missing or damaged one raises `StorageError`."""
        ...


class MemoryStore:
    """Opened once; safe to share between threads. Caches the state of `sessions_kept` sessions; 0 reads the rows on every load."""

    def __init__(self, database: Database, *, sessions_kept: int = 64) -> None:
        self.database = database
        self._kept: Bounded[str, _Kept] = Bounded(sessions_kept)
        self._lock = threading.Lock()

    @property
    def version(self) -> int:
        """The memory table's newest version."""
        return self.database.version(MEMORIES)

    def load(self, session_id: str) -> SessionMemory:
        """The session's memory as of now; raises `StorageError` if the tables cannot be read."""
        if not self.database.exists(MEMORIES):
            return SessionMemory(session_id)
        version = self.version
        kept = self._kept.get(session_id)
        if kept is not None and kept.version == version:
            return kept.memory
        memory = self._read(session_id)
        self._keep(session_id, _Kept(version, memory))
        return memory

    def commit(self, draft: MemoryDraft, raw_blocks: Sequence[RawBlock], seen: SessionMemory) -> Memory:
        """Store one memory on top of the state the caller saw; `LostRaceError` if that state is no longer the newest."""
        memory = seal(draft, seen.next_sequence, datetime.now(UTC))
        check_provenance(memory, raw_blocks, seen)
        version = self.put([memory], raw_blocks)
        kept = self._kept.get(memory.session_id)
        if kept is not None and kept.memory is seen and kept.version == version - 1:
            self._keep(memory.session_id, _Kept(version, seen.with_memory(memory)))
        return memory

    def put(self, memories: Sequence[Memory], raw_blocks: Sequence[RawBlock]) -> int:
        """Both commits, for memories that were already checked; returns the table version that contains them."""
        now = datetime.now(UTC)
        unique = {block.raw_hash: block for block in raw_blocks}
        self.database.insert(BLOCKS, [block_row(block, now) for block in unique.values()])
        added, version = self.database.insert(MEMORIES, [memory_row(memory) for memory in memories])
        if added < len(memories):
            first = memories[0]
            raise LostRaceError(f"another process stored memory {first.sequence} of session {first.session_id!r} first")
        self.database.tidy(MEMORIES)
        self.database.tidy(BLOCKS)
        return version

    def raw_blocks(self, hashes: Sequence[str]) -> dict[str, RawBlock]:
        """Archived blocks by hash; a missing or damaged one raises `StorageError`."""
        rows = self.database.rows(BLOCKS, where=is_in("raw_hash", sorted(set(hashes))), columns=["raw_hash", "body"]) if hashes else []
        found = {row["raw_hash"]: RawBlock(row["raw_hash"], row["body"]) for row in rows}
        for name in hashes:
            if name not in found:
                raise StorageError(f"archived block {name[:12]} is missing; run: pamer-lab memory check")
            if not is_intact(found[name]):
                raise StorageError(f"archived block {name[:12]} does not match its hash; run: pamer-lab memory check")
        return found

    def sessions(self) -> dict[str, int]:
        """Session id -> number of stored memories."""
        counts: dict[str, int] = {}
        if self.database.exists(MEMORIES):
            for name in self.database.arrow(MEMORIES, columns=["session_id"])["session_id"].to_pylist():
                counts[name] = counts.get(name, 0) + 1
        return counts

    def forget_session(self, session_id: str) -> None:
        """Delete a session's memories; their raw blocks become orphans if no other memory names them."""
        if self.database.exists(MEMORIES):
            self.database.delete(MEMORIES, equals("session_id", session_id))
        with self._lock:
            self._kept.pop(session_id, None)

    def forget_from(self, session_id: str, sequence: int) -> None:
        """Delete a session's memories from number `sequence` on, so that a replay can continue from the earlier ones."""
        where = f"{equals('session_id', session_id)} AND sequence >= {int(sequence)}"
        if self.database.exists(MEMORIES) and self.database.count(MEMORIES, where):
            self.database.delete(MEMORIES, where)
        with self._lock:
            self._kept.pop(session_id, None)

    def _read(self, session_id: str) -> SessionMemory:
        stored = memories_of(self.database.arrow(MEMORIES, where=equals("session_id", session_id)))
        hashes = {block.raw_hash for memory in stored for block in memory.blocks}
        return assemble(session_id, stored, self._archived(hashes))

    def _archived(self, hashes: set[str]) -> set[str]:
        """Those hashes that are in the archive."""
        if not hashes:
            return set()
        where = is_in("raw_hash", sorted(hashes)) if len(hashes) < MANY else ""
        return hashes & set(self.database.arrow(BLOCKS, where=where, columns=["raw_hash"])["raw_hash"].to_pylist())

    def _keep(self, session_id: str, kept: _Kept) -> None:
        with self._lock:
            self._kept[session_id] = kept


def check_provenance(memory: Memory, raw_blocks: Sequence[RawBlock], seen: SessionMemory) -> None:
    """Raise `StorageError` unless the memory is valid, its raw blocks are given intact, and none is covered already."""
    faults = memory.faults()
    if seen.unreadable:
        faults.append("the stored memories cannot be read; run: pamer-lab memory check --repair")
    given = {block.raw_hash for block in raw_blocks if is_intact(block)}
    if any(block.raw_hash not in given for block in memory.blocks):
        faults.append("a raw block is missing or does not match its hash")
    if any(block.block_id in seen.covered for block in memory.blocks):
        faults.append("covers a block that an earlier memory covers")
    if seen.memories and seen.memories[0].vector.size != memory.vector.size:
        faults.append("its vector has another size than the session's")
    if faults:
        raise StorageError(f"the memory was not stored: {'; '.join(faults)}")


class BufferedMemories:
    """`Memories` of one replay, buffered and stored together; not for sessions that other processes write to.

    A compression is two LanceDB commits, and checking for other processes is a third disk access. A replay owns its run (the engine holds
    its lock) and stores its turns in groups; its memories are stored the same way.
    Invariant: readers see buffered memories as if they were stored; `flush` writes raw blocks first, then memories, so that a crash leaves
    complete records; the checks of `MemoryStore.commit` run immediately, not at the flush.
    """

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self._sessions: dict[str, SessionMemory] = {}
        self._memories: list[Memory] = []
        self._blocks: dict[str, RawBlock] = {}
        self._version: int | None = None

    @property
    def version(self) -> int:
        """The stored table's version when it was last read or written here."""
        if self._version is None:
            self._version = self.store.version
        return self._version

    def load(self, session_id: str) -> SessionMemory:
        if session_id not in self._sessions:
            self._sessions[session_id] = self.store.load(session_id)
        return self._sessions[session_id]

    def commit(self, draft: MemoryDraft, raw_blocks: Sequence[RawBlock], seen: SessionMemory) -> Memory:
        """Buffer one memory; `LostRaceError` if the state the caller saw is not the newest."""
        if self._sessions.get(draft.session_id) is not seen:
            raise LostRaceError(f"session {draft.session_id!r} has changed since it was read")
        memory = seal(draft, seen.next_sequence, datetime.now(UTC))
        check_provenance(memory, raw_blocks, seen)
        self._sessions[draft.session_id] = seen.with_memory(memory)
        self._memories.append(memory)
        self._blocks.update((block.raw_hash, block) for block in raw_blocks)
        return memory

    def raw_blocks(self, hashes: Sequence[str]) -> dict[str, RawBlock]:
        held = {name: self._blocks[name] for name in hashes if name in self._blocks}
        return held | self.store.raw_blocks([name for name in hashes if name not in held])

    def flush(self) -> None:
        """Store what is buffered."""
        if self._memories:
            self._version = self.store.put(self._memories, list(self._blocks.values()))
            self._memories, self._blocks = [], {}

    def forget_from(self, session_id: str, sequence: int) -> None:
        """Delete a session's memories from number `sequence` on, buffered or stored."""
        self._memories = [memory for memory in self._memories if memory.session_id != session_id or memory.sequence < sequence]
        self._sessions.pop(session_id, None)
        self.flush()
        self.store.forget_from(session_id, sequence)
        self._version = None
