"""Spec 6's failure table, storage: disks that are full or may only be read, and saved state that is damaged."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.controller import ControllerSettings
from tests.controller.failing import falls_back, with_memory
from tests.controller.world import as_bytes, controller, history, snapshot, turn


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """A real file system of that size at `folder`; skipped where mounting is not allowed."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a small file system; the injected ENOSPC below still runs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_stores_nothing_and_the_session_goes_on_when_there_is_room(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    with small_disk(folder, 512):
        messages = with_memory(folder)
        filler = folder / "filler"
        with filler.open("wb") as stream, pytest.raises(OSError) as full:
            while True:
                os.write(stream.fileno(), b"\0" * 4096)
        assert full.value.errno == errno.ENOSPC
        longer = messages + [message for number in range(9, 16) for message in turn(number)]
        falls_back(controller(folder), folder, longer)
        filler.unlink()
        _, decision = controller(folder).transform("s", longer)
        assert decision.action == "compress"


@pytest.mark.parametrize("table", ["memory_blocks", "memories"])
def test_a_write_that_fails_with_no_space_left_stores_no_memory(tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pamer = controller(tmp_path)
    database = pamer.store.database
    original = database.insert

    def insert(spec: Any, rows: Any) -> Any:
        if spec.name == table:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(spec, rows)

    monkeypatch.setattr(database, "insert", insert)
    decision = falls_back(pamer, tmp_path, history(8))
    assert "No space left" in decision.error


READ_ONLY = """
import os, sys
from pathlib import Path
sys.path.insert(0, os.getcwd())
from tests.controller.failing import with_memory
from tests.controller.world import controller, history, turn
with_memory(Path(sys.argv[2]))  # imports what is imported on first use, while this process may still read its own libraries
if os.getuid() == 0: os.setuid(65534)
messages = history(8) + [message for number in range(8, 18) for message in turn(number)]
returned, decision = controller(Path(sys.argv[1])).transform("s", messages)
assert returned is messages, decision
assert decision.action == "fallback" and "cannot be written" in decision.error, decision
"""


def test_a_store_that_may_only_be_read_stores_nothing(tmp_path: Path) -> None:
    """In a process without the right to write: root may write anywhere."""
    folder = tmp_path / "lance"
    with_memory(folder)
    stored = snapshot(folder)
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o555 if place.is_dir() else 0o444)
    for place in (tmp_path, *list(tmp_path.parents)[:-1]):
        if os.getuid() == 0 and place.stat().st_uid == 0 and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", READ_ONLY, str(folder), str(tmp_path / "other")], capture_output=True, text=True)
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    assert done.returncode == 0, done.stderr
    assert snapshot(folder) == stored


def _damage(folder: Path, how: str) -> None:
    table = folder / "memories.lance"
    newest = min((table / "_versions").glob("*.manifest"), key=lambda path: path.name)
    match how:
        case "truncated manifest":
            newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
        case "empty manifest":
            newest.write_bytes(b"")
        case "random table files":
            for file in (table / "data").iterdir():
                file.write_bytes(os.urandom(file.stat().st_size))
        case "missing table files":
            for file in (table / "data").iterdir():
                file.unlink()
        case "no versions":
            for file in (table / "_versions").iterdir():
                file.unlink()


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", ["truncated manifest", "empty manifest", "random table files", "missing table files", "no versions"])
def test_corrupt_saved_state_counts_as_empty_memory_and_invents_nothing(tmp_path: Path, how: str) -> None:
    messages = with_memory(tmp_path)
    _damage(tmp_path, how)
    files = _files(tmp_path)
    short = controller(tmp_path, settings=ControllerSettings(compression=False))
    returned, decision = short.transform("s", messages)
    assert decision.action == "pass" and "discarded" in decision.error and decision.memories == 0
    assert as_bytes(list(returned)) == as_bytes(messages)
    returned, decision = controller(tmp_path).transform("s", messages)
    assert decision.action == "fallback" and returned is messages
    assert {path: body for path, body in _files(tmp_path).items() if path in files} == files


def _row_damage(how: str) -> dict[str, Any]:
    return {
        "another summary": {"summary": "The total of ORD-3 is 1,000,000 EUR."},
        "a vector of zeros": {"vector": [0.0] * 64},
        "no blocks": {"blocks": []},
        "a foreign id": {"memory_id": "m000000-000000000000"},
    }[how]


@pytest.mark.parametrize("how", ["another summary", "a vector of zeros", "no blocks", "a foreign id", "a lost raw block"])
def test_a_damaged_memory_is_discarded_and_its_blocks_are_active_again(tmp_path: Path, how: str) -> None:
    from pamer_lab.memory.schema import BLOCKS, MEMORIES
    from pamer_lab.storage import Database

    messages = with_memory(tmp_path)
    database = Database(tmp_path)
    if how == "a lost raw block":
        database.delete(BLOCKS, f"raw_hash = '{database.rows(BLOCKS)[0]['raw_hash']}'")
    else:
        database.upsert(MEMORIES, [database.rows(MEMORIES)[0] | _row_damage(how)])
    pamer = controller(tmp_path, settings=ControllerSettings(compression=False))
    returned, decision = pamer.transform("s", messages)
    assert decision.action == "pass" and decision.memories == 0 and "discarded" in decision.error
    assert as_bytes(list(returned)) == as_bytes(messages)
    _, decision = controller(tmp_path).transform("s", messages)
    assert decision.action == "compress" and decision.block_states.count("summarised") == 7
