"""Reviewer mode: everything can be read, nothing but reviews can be written, and the library itself refuses."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.cli import COMMANDS, READING, main
from pamer_lab.errors import InputError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.schema import MEMORIES
from pamer_lab.models.chat import load_chat
from pamer_lab.models.embedder import load_embedder
from pamer_lab.models.frozen import load_frozen
from pamer_lab.models.profiles import load_profile
from pamer_lab.prices import find_prices, write_table
from pamer_lab.reviewer_mode import CONFIG_FILE, READONLY_VARIABLE, ReviewerModeError, reviewer_mode
from pamer_lab.runs.engine import replay
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import TRACES, Workspace
from pamer_lab.workspace.ingest import import_paths, import_uploads
from tests.audit.test_audit import record
from tests.runs.making import estimated, long_trace


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """A workspace with a trace, a run and a selection, opened anew."""
    workspace.add_traces([long_trace(4)], estimated())
    replay("t-long", "sliding-window:2", workspace)
    AuditStore(workspace.database, run_id="run 1", trace_id="t-long").record(record(3, 1))
    return Workspace(workspace.path)


@pytest.fixture(params=["variable", "file"])
def reviewing(request: pytest.FixtureRequest, filled: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Reviewer mode, asked for either way."""
    if request.param == "variable":
        monkeypatch.setenv(READONLY_VARIABLE, "1")
    else:
        (filled.path / CONFIG_FILE).write_text("readonly = true\n")
    return filled


def _content(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file()}


def _writes(lab: Workspace) -> dict[str, Callable[[], Any]]:
    profile = load_profile("embedded")
    return {
        "add a trace": lambda: lab.add_traces([long_trace(3, trace_id="new")], estimated()),
        "remove a trace": lambda: lab.remove_trace("t-long"),
        "replay": lambda: replay("t-long", "base", lab),
        "remove a run": lambda: RunStore(lab).remove(RunStore(lab).heads()[0].run_id),
        "record a selection": lambda: AuditStore(lab.database, run_id="r").record(record(1, 1)),
        "recover a table": lambda: lab.database.recover(TRACES),
        "change prices": lambda: write_table(find_prices(), lab.path),
        "read a path": lambda: import_paths(["sample_traces/demo"], lab),
        "upload": lambda: import_uploads([("a.json", b"[]")], lab),
        "load the model": lambda: load_frozen(profile),
        "load the embedder": lambda: load_embedder(profile),
        "ask a server": lambda: load_chat(load_profile("paper")),
    }


def test_every_way_to_change_the_workspace_is_refused_and_changes_nothing(reviewing: Workspace) -> None:
    before = _content(reviewing.path)
    for name, write in _writes(reviewing).items():
        with pytest.raises(ReviewerModeError):
            write()
            pytest.fail(name)
    assert _content(reviewing.path) == before


def test_everything_can_be_read_and_reviews_can_be_written(reviewing: Workspace) -> None:
    assert reviewing.trace("t-long").trace.turns == 4
    run = RunStore(reviewing).run(RunStore(reviewing).heads()[0].run_id)
    assert len(run.turns) == 4
    (selection,) = AuditStore(reviewing.database).rows()
    reviews = ReviewStore(reviewing.database)
    reviews.save(selection["audit_id"], "Ada", "right")
    reviews.save(selection["audit_id"], "Ada", "wrong step", (2,))
    assert [review.verdict for review in reviews.current()] == ["wrong step"]


def test_a_table_that_is_not_there_reads_as_empty_and_is_not_made(reviewing: Workspace) -> None:
    database = reviewing.database
    assert database.rows(MEMORIES, columns=["session_id"]) == [] and database.count(MEMORIES) == 0 and database.version(MEMORIES) == 0
    assert MemoryStore(database).load("nobody").memories == ()
    assert not (reviewing.path / "lance" / "memories.lance").exists()


def test_an_empty_place_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READONLY_VARIABLE, "yes")
    lab = Workspace(tmp_path / "nothing")
    assert lab.trace_rows() == [] and lab.database.rows(TRACES) == []
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - READING))
def test_commands_that_write_say_in_one_line_that_they_cannot(
    command: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    needed = {"import": ["x"], "generate": ["--out", "x"], "whatif": ["x"], "bench": ["blocks"]}.get(command, [])
    try:
        code = main([command, *needed])
    except SystemExit as stopped:
        code = int(stopped.code or 0)  # argparse asks for its arguments before anything else
    told = capsys.readouterr().err
    assert code == 2 and (told.count("\n") == 1 or "usage" in told) and not workspace.path.exists()


def test_reading_commands_work(reviewing: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["selections"]) == 1


@pytest.mark.parametrize(("value", "on"), [("1", True), ("TRUE", True), ("please", True), ("0", False), ("off", False), ("", False)])
def test_the_variable_is_on_unless_it_says_off(value: str, on: bool, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READONLY_VARIABLE, value)
    assert reviewer_mode() is on


def test_a_setting_that_does_not_exist_is_refused(workspace: Workspace) -> None:
    workspace.path.mkdir(parents=True)
    (workspace.path / CONFIG_FILE).write_text("read_only = true\n")
    with pytest.raises(InputError, match="read_only"):
        reviewer_mode()
