"""Memories in LanceDB; memories held back are seen at once and stored together, raw blocks first."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamer_lab.bench.crash import PROCESSES
from pamer_lab.errors import StorageError
from pamer_lab.memory import BufferedMemories, CoveredBlock, LostRaceError, MemoryDraft, MemoryStore, SessionMemory
from pamer_lab.memory.records import pack, unpack
from pamer_lab.memory.schema import BLOCKS, MEMORIES
from pamer_lab.storage import Database
from tests.controller.world import controller, history


def draft(session: str, *texts: str, step: int = 0, vector: Any = None) -> tuple[MemoryDraft, list[Any]]:
    """A memory over one block per text."""
    raw = [pack([{"role": "assistant", "content": text}]) for text in texts]
    blocks = tuple(
        CoveredBlock(step + number, f"{text}:0", block.raw_hash, f"said {text}", 10)
        for number, (text, block) in enumerate(zip(texts, raw, strict=True))
    )
    row = np.ones(4, dtype=np.float32) if vector is None else np.asarray(vector, dtype=np.float32)
    return MemoryDraft(session, f"about {texts}", row, blocks, 5, "t", "s", "e"), raw


def test_a_stored_memory_comes_back_as_it_was_from_a_fresh_store(tmp_path: Path) -> None:
    store = MemoryStore(Database(tmp_path))
    session = "it's \"odd\" -- ' OR true"
    stored = store.commit(*draft(session, "a", "b"), store.load(session))
    found = MemoryStore(Database(tmp_path)).load(session)
    assert found.memories == (stored,) and found.memories[0].faults() == []
    assert np.array_equal(found.memories[0].vector, stored.vector)
    assert set(found.covered) == {"a:0", "b:0"} and found.next_sequence == 1
    assert MemoryStore(Database(tmp_path)).load("another").memories == ()
    assert MemoryStore(Database(tmp_path)).sessions() == {session: 1}


def test_raw_blocks_come_back_byte_for_byte_and_equal_blocks_are_kept_once(tmp_path: Path) -> None:
    store = MemoryStore(Database(tmp_path))
    given, raw = draft("s", "a", "ü\u2028", "c")
    store.commit(given, raw, store.load("s"))
    store.commit(*draft("other", "a"), store.load("other"))
    found = store.raw_blocks([block.raw_hash for block in raw])
    assert [unpack(found[block.raw_hash]) for block in raw] == [unpack(block) for block in raw]
    assert Database(tmp_path).count(BLOCKS) == 3


def test_a_writer_that_saw_an_old_state_loses_and_stores_nothing(tmp_path: Path) -> None:
    one, two = MemoryStore(Database(tmp_path)), MemoryStore(Database(tmp_path))
    seen = two.load("s")
    first = one.commit(*draft("s", "a"), one.load("s"))
    with pytest.raises(LostRaceError):
        two.commit(*draft("s", "b"), seen)
    assert two.load("s").memories == (first,)
    second = two.commit(*draft("s", "b", step=1), two.load("s"))
    assert one.load("s").memories == (first, second)


@pytest.mark.parametrize(
    "fault", ["no raw block", "other raw block", "zero vector", "no blocks", "covered twice", "covered already", "size"]
)
def test_a_memory_that_is_not_sound_is_refused_before_anything_is_written(tmp_path: Path, fault: str) -> None:
    store = MemoryStore(Database(tmp_path))
    store.commit(*draft("s", "a"), store.load("s"))
    given, raw = {
        "no raw block": (draft("s", "b")[0], []),
        "other raw block": (draft("s", "b")[0], draft("s", "c")[1]),
        "zero vector": draft("s", "b", vector=[0, 0, 0, 0]),
        "no blocks": draft("s"),
        "covered twice": draft("s", "b", "b"),
        "covered already": draft("s", "a"),
        "size": draft("s", "b", vector=[1, 2, 3]),
    }[fault]
    rows = (Database(tmp_path).count(BLOCKS), Database(tmp_path).count(MEMORIES))
    with pytest.raises(StorageError):
        store.commit(given, raw, store.load("s"))
    assert (Database(tmp_path).count(BLOCKS), Database(tmp_path).count(MEMORIES)) == rows


def test_nothing_is_stored_on_top_of_a_state_that_could_not_be_read(tmp_path: Path) -> None:
    store = MemoryStore(Database(tmp_path))
    with pytest.raises(StorageError, match="pamer-lab memory check"):
        store.commit(*draft("s", "a"), SessionMemory("s", unreadable=True))


def test_a_state_is_read_once_as_long_as_nothing_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(Database(tmp_path))
    store.commit(*draft("s", "a"), store.load("s"))
    first = store.load("s")
    monkeypatch.setattr(store.database, "arrow", lambda *args, **options: pytest.fail("read again"))
    assert store.load("s") is first


def test_another_stores_commit_is_seen(tmp_path: Path) -> None:
    one, two = MemoryStore(Database(tmp_path)), MemoryStore(Database(tmp_path))
    one.commit(*draft("s", "a"), one.load("s"))
    assert len(two.load("s").memories) == 1
    one.commit(*draft("s", "b", step=1), one.load("s"))
    assert len(two.load("s").memories) == 2


def compete(folder: str, turns: int, barrier: Any, results: Any) -> None:
    """One of several processes that serve the same session at the same time."""
    pamer = controller(Path(folder))
    messages = history(turns, words=60)
    actions: Counter[str] = Counter()
    for end in range(4, len(messages) + 1, 8):
        barrier.wait(100)
        _, decision = pamer.transform("s", messages[:end])
        actions[decision.action] += 1
    results.put(actions)


def test_two_processes_on_one_session_lose_no_memory_and_double_none(tmp_path: Path) -> None:
    barrier, results = PROCESSES.Barrier(2), PROCESSES.Queue()
    arguments = (str(tmp_path), 60, barrier, results)
    processes = [PROCESSES.Process(target=compete, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    actions = results.get(timeout=120) + results.get(timeout=120)
    for process in processes:
        process.join(60)
    store = MemoryStore(Database(tmp_path))
    memory = store.load("s")
    assert memory.discarded == () and len(memory.memories) == actions["compress"] > 1
    assert [entry.sequence for entry in memory.memories] == list(range(len(memory.memories)))
    steps = [step for entry in memory.memories for step in entry.steps]
    assert len(steps) == len(set(steps)) and sorted(steps) == list(range(len(steps)))


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
