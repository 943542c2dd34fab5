"""Memories of sessions that only one process works on, buffered and stored together.

A compression is two LanceDB commits, and checking for other processes is a third disk access. A replay owns its run (the engine holds its
lock) and stores its turns in groups; its memories are stored the same way.
Invariant: readers see buffered memories as if they were stored; `flush` writes raw blocks first, then memories, so that a crash leaves
complete records; the checks of `MemoryStore.commit` run immediately, not at the flush.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pamer_lab.memory.records import Memory, MemoryDraft, RawBlock, seal
from pamer_lab.memory.session import SessionMemory
from pamer_lab.memory.store import LostRaceError, MemoryStore, check_provenance


class BufferedMemories:
    """`Memories` of one replay; not for sessions that other processes write to."""

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
        """Hold one memory; `LostRaceError` if the state the caller saw is not the newest."""
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
        """Store what is held."""
        if self._memories:
            self._version = self.store.put(self._memories, list(self._blocks.values()))
            self._memories, self._blocks = [], {}

    def forget_from(self, session_id: str, sequence: int) -> None:
        """Delete a session's memories from number `sequence` on, held or stored."""
        self._memories = [memory for memory in self._memories if memory.session_id != session_id or memory.sequence < sequence]
        self._sessions.pop(session_id, None)
        self.flush()
        self.store.forget_from(session_id, sequence)
        self._version = None
