"""Memories held back: seen at once, stored together, raw blocks first."""

from pathlib import Path

import pytest

from pamer_lab.errors import StorageError
from pamer_lab.memory import BufferedMemories, LostRaceError, MemoryStore
from pamer_lab.memory.schema import BLOCKS, MEMORIES
from pamer_lab.storage import Database
from tests.memory.test_store import draft


def test_what_is_held_is_seen_at_once_and_stored_only_at_the_flush(tmp_path: Path) -> None:
    held, other = BufferedMemories(MemoryStore(Database(tmp_path))), MemoryStore(Database(tmp_path))
    given, raw = draft("s", "a", "b")
    first = held.commit(given, raw, held.load("s"))
    second = held.commit(*draft("s", "c", step=2), held.load("s"))
    assert held.load("s").memories == (first, second) and held.load("s").next_sequence == 2
    assert held.raw_blocks([block.raw_hash for block in raw]) == {block.raw_hash: block for block in raw}
    assert other.load("s").memories == ()
    held.flush()
    assert other.load("s").memories == (first, second) and held.version == other.version
    assert held.raw_blocks([block.raw_hash for block in raw]).keys() == {block.raw_hash for block in raw}
    held.flush()
    assert held.version == other.version, "nothing is written twice"


def test_a_state_that_is_not_the_newest_and_a_block_without_its_bytes_are_refused(tmp_path: Path) -> None:
    held = BufferedMemories(MemoryStore(Database(tmp_path)))
    seen = held.load("s")
    held.commit(*draft("s", "a"), seen)
    with pytest.raises(LostRaceError):
        held.commit(*draft("s", "b"), seen)
    with pytest.raises(StorageError, match="missing"):
        held.commit(draft("s", "c")[0], [], held.load("s"))
    assert len(held.load("s").memories) == 1


def test_a_crash_between_blocks_and_memories_leaves_blocks_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = BufferedMemories(MemoryStore(Database(tmp_path)))
    held.commit(*draft("s", "a"), held.load("s"))
    plain = Database.insert

    def breaking(self: Database, spec: object, rows: object) -> tuple[int, int]:
        if spec is MEMORIES:
            raise StorageError("the disk is full")
        return plain(self, spec, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "insert", breaking)
    with pytest.raises(StorageError, match="disk is full"):
        held.flush()
    monkeypatch.undo()
    assert MemoryStore(Database(tmp_path)).load("s").memories == () and Database(tmp_path).count(BLOCKS) == 1
    held.flush()
    assert len(MemoryStore(Database(tmp_path)).load("s").memories) == 1 and Database(tmp_path).count(BLOCKS) == 1


def test_memories_are_forgotten_from_a_number_on_whether_held_or_stored(tmp_path: Path) -> None:
    held = BufferedMemories(MemoryStore(Database(tmp_path)))
    for number, text in enumerate("abcd"):
        held.commit(*draft("s", text, step=number), held.load("s"))
        if number == 1:
            held.flush()
    held.forget_from("s", 3)
    assert [memory.steps for memory in held.load("s").memories] == [(0,), (1,), (2,)]
    held.forget_from("s", 1)
    assert [memory.steps for memory in MemoryStore(Database(tmp_path)).load("s").memories] == [(0,)]
    held.commit(*draft("s", "e", step=1), held.load("s"))
    held.flush()
    assert [memory.sequence for memory in MemoryStore(Database(tmp_path)).load("s").memories] == [0, 1]
