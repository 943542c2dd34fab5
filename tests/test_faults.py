"""When the world fails: full disk, no right to write, a folder that vanishes, a clock that goes back, two versions, a cut-off migration.

Each fault for a command and for a page: one sentence that says what to do, no traceback, nothing damaged, and the work goes on once
the fault is gone. `docs/operations.md` says the same in words.
"""

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lancedb
import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab import workspace as workspace_module
from pamer_lab.audit import ReviewStore
from pamer_lab.bench.crash import PROCESSES
from pamer_lab.cli import main
from pamer_lab.errors import StorageError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import check
from pamer_lab.storage import Database, TableSpec
from pamer_lab.storage.faults import GONE
from pamer_lab.storage.files import write_whole
from pamer_lab.storage.specs import SCHEMA_NUMBER
from pamer_lab.workspace import TRACES, Workspace
from tests.controller.world import controller, history, turn
from tests.pages.conftest import APP, chat, put, texts

FULL, READ_ONLY = OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EROFS, "Read-only file system")
Break = Callable[[], None]


@contextmanager
def broken(fault: OSError, how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Break, Break]]:
    """Ways to bring a fault about and to mend it: on a real small file system, or by an engine that raises it."""
    if how == "injected":
        folder.mkdir()

        def refuse(*_: Any, **__: Any) -> None:
            raise fault

        original = lancedb.table.LanceTable.merge_insert
        yield (
            lambda: monkeypatch.setattr(lancedb.table.LanceTable, "merge_insert", refuse),
            lambda: monkeypatch.setattr(lancedb.table.LanceTable, "merge_insert", original),
        )
        return
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=640k", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("this user may not mount a small file system; the injected fault still runs")
    try:
        yield (lambda: _break(fault, folder)), (lambda: _mend(fault, folder))
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _break(fault: OSError, folder: Path) -> None:
    if fault is READ_ONLY:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        return
    with (folder / "filler").open("wb") as stream, pytest.raises(OSError):
        while True:
            os.write(stream.fileno(), b"\0" * 4096)


def _mend(fault: OSError, folder: Path) -> None:
    if fault is READ_ONLY:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    else:
        (folder / "filler").unlink()


@pytest.mark.parametrize("how", ["real", "injected"])
@pytest.mark.parametrize(("fault", "advice"), [(FULL, "free some space"), (READ_ONLY, "is read-only")], ids=["full disk", "read-only"])
def test_a_place_that_cannot_be_written_is_a_sentence_and_the_work_goes_on_afterwards(
    fault: OSError, advice: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new.json"
    file.write_bytes(chat(5))
    with broken(fault, how, tmp_path / "disk", monkeypatch) as (break_it, mend_it):
        monkeypatch.setenv("PAMER_LAB_HOME", str(tmp_path / "disk" / "workspace"))
        lab = Workspace()
        put(lab, old=chat(3))
        break_it()
        assert main(["import", str(file)]) == 1
        said = capsys.readouterr().err
        assert advice in said and "Traceback" not in said and ".rs:" not in said and said.count("\n") == 1
        assert [row["name"] for row in Workspace().trace_rows()] == ["old.json"]
        if how == "real":
            assert main(["replay", lab.trace_rows()[0]["trace_id"], "--policy", "base"]) == 1
            assert main(["audit", "export", str(tmp_path / "disk" / "audit.csv")]) == 2
            assert "Traceback" not in capsys.readouterr().err
            assert not (tmp_path / "disk" / "audit.csv").exists()
        app = AppTest.from_file(str(APP), default_timeout=120).run()
        assert not app.exception and list(app.dataframe[0].value["Name"]) == ["old.json"]
        app.file_uploader[0].set_value([("new.json", chat(5), "application/json")]).run()
        assert not app.exception and advice in texts(app)
        mend_it()
        assert main(["import", str(file)]) == 0
        assert main(["replay", lab.trace_rows()[0]["trace_id"], "--policy", "base"]) == 0
        assert len(Workspace().trace_rows()) == 2


def test_a_workspace_that_is_deleted_while_a_page_is_open_is_told_and_begins_anew(workspace: Workspace) -> None:
    put(workspace, own=chat(3))
    app = AppTest.from_file(str(APP), default_timeout=120).run()
    assert not app.exception and "own.json" in set(app.dataframe[0].value["Name"])
    shutil.rmtree(workspace.path)
    app.run()
    assert not app.exception
    assert not app.error or GONE in texts(app)
    app.run()
    assert not app.exception and not app.error and "demo" in texts(app)


def test_a_database_that_is_deleted_under_a_program_is_told_once_and_then_made_anew(workspace: Workspace) -> None:
    put(workspace, own=chat(3))
    shutil.rmtree(workspace.path)
    with pytest.raises(StorageError, match=re.escape(str(workspace.path))):
        workspace.database.rows(TRACES)
    put(workspace, own=chat(3))
    assert len(workspace.trace_rows()) == 1


def test_a_memory_that_is_deleted_under_a_session_loses_no_block(tmp_path: Path) -> None:
    folder = tmp_path / "lance"
    pamer = controller(folder)
    messages = history(8)
    assert pamer.transform("s", messages)[1].action == "compress"
    shutil.rmtree(folder)
    longer = messages + [message for number in range(8, 12) for message in turn(number)]
    returned, decision = pamer.transform("s", longer)
    assert decision.action == "compress" or list(returned) == longer, decision
    _, decision = controller(folder).transform("s", longer + turn(12))
    assert set(decision.block_states) <= {"active", "summarised", "recalled"} and len(decision.block_states) == 13


class BackwardClock(datetime):
    """Every look at it is a day earlier."""

    looks = 0

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        cls.looks += 1
        return datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=cls.looks)


def test_a_clock_that_goes_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pamer_lab.memory.store", "pamer_lab.audit.reviews", "pamer_lab.memory.check"):
        monkeypatch.setattr(f"{module}.datetime", BackwardClock)
    pamer = controller(tmp_path)
    messages = history(8)
    for number in range(8, 26, 6):
        assert pamer.transform("s", messages)[1].action == "compress"
        messages += [message for place in range(number, number + 6) for message in turn(place)]
    memory = MemoryStore(Database(tmp_path)).load("s")
    assert [entry.sequence for entry in memory.memories] == [0, 1, 2] and memory.discarded == ()
    assert memory.memories[0].created_at > memory.memories[2].created_at
    assert check(Database(tmp_path)).clean
    reviews = ReviewStore(Database(tmp_path))
    for verdict in ("wrong step", "right"):
        reviews.save("a-1", "Ada", verdict)
    assert [review.verdict for review in reviews.current()] == ["right"]


NEWER = r"'traces'.*schema 99\b"


def test_a_workspace_of_a_newer_program_is_refused_and_left_alone(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    put(workspace, own=chat(3))
    table = lancedb.connect(workspace.path / "lance").open_table("traces")
    table.update_field_metadata({"path": "trace_id", "metadata": {SCHEMA_NUMBER: "99"}})
    version = lancedb.connect(workspace.path / "lance").open_table("traces").version
    assert main(["import", "sample_traces/try-upload.chat.json"]) == 1
    assert re.search(NEWER, capsys.readouterr().err)
    app = AppTest.from_file(str(APP), default_timeout=120).run()
    assert not app.exception and re.search(NEWER, texts(app))
    assert lancedb.connect(workspace.path / "lance").open_table("traces").version == version


def add_colour(table: Any) -> None:
    """A migration as they are written here: it looks first whether its change is there."""
    if "colour" not in table.schema.names:
        table.add_columns({"colour": "'grey'"})


def add_colour_and_die(table: Any) -> None:
    add_colour(table)
    os._exit(9)


def newer(migration: Any) -> TableSpec:
    return TableSpec(TRACES.name, TRACES.schema, TRACES.key, migrations=(migration,))


def migrate_and_die(folder: str) -> None:
    Database(folder).table(newer(add_colour_and_die))


def test_a_migration_that_was_cut_off_is_finished_by_the_next_program(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(workspace, own=chat(3))
    process = PROCESSES.Process(target=migrate_and_die, args=(str(workspace.path / "lance"),))
    process.start()
    process.join(120)
    assert process.exitcode == 9
    assert len(Workspace(workspace.path).trace_rows()) == 1, "the older program still reads what is there"
    for module in (workspace_module, __import__("pamer_lab.ui.shared.loaders", fromlist=["TRACES"])):
        monkeypatch.setattr(module, "TRACES", newer(add_colour))
    app = AppTest.from_file(str(APP), default_timeout=120).run()
    assert not app.exception and not app.error and "own.json" in set(app.dataframe[0].value["Name"])
    table = lancedb.connect(workspace.path / "lance").open_table("traces")
    assert (table.schema.field("trace_id").metadata or {})[SCHEMA_NUMBER.encode()] == b"1" and "colour" in table.schema.names
    monkeypatch.undo()
    monkeypatch.setenv("PAMER_LAB_HOME", str(workspace.path))
    assert main(["import", "sample_traces/try-upload.chat.json"]) == 1
    assert re.search(r"'traces'.*schema 1\b", capsys.readouterr().err)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pamer_lab.errors import InputError

    target = tmp_path / "out.csv"
    write_whole(target, b"first")
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(InputError, match=r"out\.csv.*No space left on device"):
        write_whole(target, b"second")
    assert target.read_bytes() == b"first" and [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    for place in (tmp_path, tmp_path / "no" / "such" / "x.csv", tmp_path / ("n" * 400), tmp_path / "a\0b"):
        with pytest.raises(InputError):
            write_whole(place, b"x")
