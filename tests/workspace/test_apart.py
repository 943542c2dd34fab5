"""Reading a stranger's large file costs bounded memory, and at worst the process that reads it."""

import gzip
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pamer_lab.config import MAX_FILE_VARIABLE
from pamer_lab.errors import InputError
from pamer_lab.jobs import own_environment
from pamer_lab.reviewer_mode import READONLY_VARIABLE
from pamer_lab.workspace import Workspace, apart
from pamer_lab.workspace.ingest import Imported, import_uploads
from tests.workspace.test_ingest import CHAT

WORDS = "the museum opened in 1911, closed in 1943 and was rebuilt by its founder's daughter; "
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Prints the peak memory of a command in kilobytes. Linux counts the memory of the process that starts it too, so a small one does."""


def giant(characters: int) -> bytes:
    """A trace with one message of so many characters."""
    text = WORDS * (characters // len(WORDS))
    return json.dumps([{"role": "user", "content": text}, {"role": "assistant", "content": "done"}]).encode()


def test_a_giant_message_takes_at_most_ten_times_its_file_and_300_mb(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "giant.json"
    file.write_bytes(giant(10_000_000))
    words = [sys.executable, "-m", "pamer_lab.cli", "import", str(file), "--workspace", str(workspace.path)]
    measured = subprocess.run([sys.executable, "-c", PEAK, *words], env=own_environment(), capture_output=True, text=True, check=True)
    assert workspace.trace_rows()[0]["tokens"] > 1_000_000
    assert 0 < int(measured.stdout) * 1024 <= 10 * file.stat().st_size + 300_000_000


def test_a_process_of_its_own_reads_the_same_and_refuses_the_same(workspace: Workspace, tmp_path: Path) -> None:
    files = [("run.json", CHAT), ("bad.json", b"{"), ("packed.json.gz", gzip.compress(CHAT + b" "))]
    found = apart.import_files_apart(files, workspace)
    elsewhere = import_uploads(files, Workspace(tmp_path / "elsewhere"))
    assert found == elsewhere and len(found.traces) == 2 and [item.path for item in found.rejected] == ["bad.json"]
    (tmp_path / "run.json").write_bytes(CHAT)
    assert apart.import_paths_apart([str(tmp_path / "run.json"), str(tmp_path / "none")], workspace, [tmp_path]).known == 1


@pytest.mark.parametrize(
    "start", [b"\x28\xb5\x2f\xfd", b"SQLite format 3\0", b"interactions:\n", b"# chat", b"", gzip.compress(b"", mtime=0), b"PK\3\4"]
)
def test_what_may_become_more_than_it_is_never_becomes_it_in_the_pages_process(
    start: bytes, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart_only = Imported()
    monkeypatch.setattr(apart, "import_uploads", lambda *_: pytest.fail("read in the page's process"))
    monkeypatch.setattr(apart, "_ask", lambda *_: apart_only)
    assert apart.import_files_apart([("run.json", CHAT), ("small", start)], workspace) is apart_only


@pytest.mark.parametrize("before", [b"", b"\n ", b"\xef\xbb\xbf"])
def test_small_json_is_read_at_once(before: bytes, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_ask", lambda *_: pytest.fail("a process for a small file"))
    assert len(apart.import_files_apart([("run.json", before + CHAT)], workspace).traces) == 1


def test_a_file_that_needs_too_much_memory_ends_its_process_only(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    import_uploads([("run.json", CHAT)], workspace)
    monkeypatch.setattr(apart, "FREE_MEMORY", 20_000_000)
    found = apart.import_files_apart([("big.json", giant(100_000))], workspace, small=0)
    assert not found.traces and len(found.rejected) == 1
    assert len(workspace.trace_rows()) == 1


def test_a_file_that_takes_too_long_ends_its_process_only(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MOST_SECONDS", 0.01)
    found = apart.import_files_apart([("run.json", CHAT)], workspace, small=0)
    assert not found.traces and len(found.rejected) == 1 and workspace.trace_rows() == []


def test_limits_and_reviewer_mode_hold_in_the_process_too(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_FILE_VARIABLE, "1")
    (refused,) = apart.import_files_apart([("big.json", giant(2_000_000))], workspace, small=0).rejected
    assert refused.path == "big.json" and MAX_FILE_VARIABLE in refused.reason
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    with pytest.raises(InputError):
        apart.import_files_apart([("run.json", CHAT)], workspace, small=0)


class Someone(threading.Thread):
    """An import at a place of its own until it is told to end; how often it was told that it waits."""

    def __init__(self, places: apart.Places, memory: int) -> None:
        super().__init__(daemon=True)
        self.waited, self.works, self.ends = threading.Event(), threading.Event(), threading.Event()
        self._places, self._memory = places, memory
        self.start()

    def run(self) -> None:
        with self._places.place(self._memory, self.waited.set):
            self.works.set()
            self.ends.wait()

    def end(self) -> None:
        self.ends.set()
        self.join()


def test_a_long_import_keeps_no_other_visitor_waiting_and_memory_is_bounded_for_all_together() -> None:
    places = apart.Places(3, 100)
    long = Someone(places, 60)
    long.works.wait()
    large = Someone(places, 60)
    large.waited.wait()
    small = Someone(places, 40)
    small.works.wait()
    assert not large.works.is_set(), "60 + 60 is more than all may use"
    small.end()
    long.end()
    large.works.wait()
    large.end()


def test_no_more_than_the_stated_number_work_at_once_and_a_giant_works_alone() -> None:
    places = apart.Places(2, 100)
    one, two = Someone(places, 1), Someone(places, 1)
    one.works.wait()
    two.works.wait()
    three, giant = Someone(places, 1), Someone(places, 1_000)
    three.waited.wait()
    giant.waited.wait()
    one.end()
    three.works.wait()
    assert not giant.works.is_set()
    two.end()
    three.end()
    giant.works.wait()
    giant.end()


def test_a_visitor_who_leaves_while_waiting_gives_up_the_place_in_line() -> None:
    places = apart.Places(1, 100)
    first = Someone(places, 1)
    first.works.wait()
    with pytest.raises(KeyError), places.place(1, lambda: {}["gone"]):
        pytest.fail("a place that is taken")
    second = Someone(places, 1)
    second.waited.wait()
    first.end()
    second.works.wait()
    second.end()


def test_imports_at_once_are_all_in_the_workspace(workspace: Workspace) -> None:
    files = [(f"run{number}.json", CHAT.replace(b'"b"', b'"b%d"' % number)) for number in range(apart.MOST_AT_ONCE)]
    with ThreadPoolExecutor(len(files)) as pool:
        found = list(pool.map(lambda file: apart.import_files_apart([file], workspace, small=0), files))
    assert len({row["trace_id"] for one in found for row in one.traces}) == len(workspace.trace_rows()) == len(files)
