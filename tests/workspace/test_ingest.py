"""The one way into the workspace."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.bench.crash import PROCESSES
from pamer_lab.trajectory import Rejection
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo, import_paths, import_uploads, upload_fault
from tests.trajectory.test_unpacking import NAMES

CHAT = b'[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]'


def test_uploads_and_paths_give_the_same_trace(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(CHAT)
    first = import_uploads([("other.json", CHAT)], workspace)
    second = import_paths([file], workspace)
    assert first.traces[0]["trace_id"] == second.traces[0]["trace_id"]
    assert (first.known, second.known) == (0, 1)
    assert len(workspace.trace_rows()) == 1


def test_a_refused_file_is_reported_while_the_rest_goes_on(workspace: Workspace) -> None:
    result = import_uploads([("bad.json", b"{"), ("good.json", CHAT), ("empty.json", b"")], workspace)
    assert [item.path for item in result.rejected] == ["bad.json", "empty.json"]
    assert len(result.traces) == 1


def test_refusals_are_told_as_they_happen(workspace: Workspace, tmp_path: Path) -> None:
    told: list[Rejection] = []
    import_paths([tmp_path / "nowhere"], workspace, on_reject=told.append)
    assert len(told) == 1 and told[0].path.endswith("nowhere") and told[0].reason


def test_the_demo_is_readable_and_marked(workspace: Workspace) -> None:
    result = import_demo(workspace)
    assert result.traces and not result.rejected
    assert all(row["demo"] for row in workspace.trace_rows())
    assert not any(row["warnings"] for row in result.traces)


def numbered(number: int) -> bytes:
    return CHAT.replace(b'"b"', f'"answer {number}"'.encode())


def test_no_name_becomes_a_path(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = import_uploads([(name, numbered(place)) for place, name in enumerate(NAMES)], workspace)
    assert len(result.traces) + len(result.rejected) == len(NAMES)
    files = [file.relative_to(tmp_path) for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.parts[0] for file in files} == {"workspace"}
    # LanceDB's own files only: table folders, and numbers or uuids below them.
    assert {file.parts[1] for file in files} == {"lance"} and {file.parts[2] for file in files} == {"traces.lance"}
    assert not any(word in str(file) for file in files for word in ("passwd", "job", "owned", "event", "ssh"))


def test_an_upload_that_is_too_much_is_refused_before_it_is_read() -> None:
    assert upload_fault([1_000] * 100) == ""
    assert re.search(r"50,001 .*50,000 ", upload_fault([1] * 50_001))
    assert re.search(r"1,200 MB .*1,000 MB ", upload_fault([200_000_000] * 6))


def _import_many(folder: str, first: int, barrier: Any) -> None:
    lab = Workspace(folder)
    for number in range(first, first + 4):
        barrier.wait(60)
        import_uploads([(f"{number}.json", numbered(number)), ("same.json", CHAT)], lab)


@pytest.mark.parametrize("kind", ["threads of one server", "processes"])
def test_uploads_at_the_same_moment_keep_all_intact(workspace: Workspace, kind: str) -> None:
    """Two browsers on one dashboard are two threads; a second dashboard or a command is a second process."""
    context: Any = PROCESSES if kind == "processes" else threading
    make = context.Process if kind == "processes" else threading.Thread
    barrier = context.Barrier(2)
    workers = [make(target=_import_many, args=(str(workspace.path), first, barrier)) for first in (0, 100)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    texts = [workspace.trace(row["trace_id"]).trace.messages[1].content for row in workspace.trace_rows()]
    assert sorted(texts) == sorted(["b", *(f"answer {number}" for first in (0, 100) for number in range(first, first + 4))])
