"""Programs and graders of any kind come back in time: with children that go on, endless output, or their folder deleted."""

import os
import sys
from pathlib import Path

import pytest

from pamer_lab.arena import program, suite
from pamer_lab.arena.agents import AgentError
from pamer_lab.arena.command import CommandAgent
from pamer_lab.arena.program import NOT_STARTED, Ran, run_program
from pamer_lab.arena.suite import SuiteTask

LONG = 600
"""Seconds that a test would take if nothing ended the program."""


def shell(text: str, folder: Path, seconds: float = LONG) -> Ran:
    return run_program(["sh", "-c", text], dict(os.environ), folder, seconds)


def test_what_a_program_prints_and_its_exit_code_come_back(tmp_path: Path) -> None:
    ran = shell("printf good; printf bad >&2; exit 3", tmp_path)
    assert (ran.code, ran.said, ran.complaint, ran.why) == (3, "good", "bad", "")


def test_children_that_go_on_end_with_their_program(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "open")
    reading = os.open(tmp_path / "open", os.O_RDONLY | os.O_NONBLOCK)
    assert shell(f"exec 3>open; sleep {LONG} & exit 0", tmp_path).code == 0
    os.set_blocking(reading, True)
    assert os.read(reading, 1) == b""  # comes when nobody has it open for writing any more
    os.close(reading)


def test_a_program_is_ended_when_its_time_is_over_with_what_it_had_printed(tmp_path: Path) -> None:
    ran = shell(f"echo begun; sleep {LONG}; echo done", tmp_path, 0.5)
    assert ran.code is None and ran.why and ran.said == "begun\n"


def test_endless_output_is_ended_and_its_end_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PRINTED_BYTES", 100_000)
    monkeypatch.setattr(program, "KEPT_BYTES", 1_000)
    ran = shell("yes", tmp_path)
    assert ran.code is None and ran.why and len(ran.said) == 1_000


def test_a_program_may_delete_its_folder_and_cannot_read_from_us(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    assert shell(f"rm -rf {work}; echo answer", work).said == "answer\n"
    assert shell("read line && echo got it; echo end", tmp_path).said == "end\n"
    assert run_program([str(tmp_path)], {}, tmp_path, LONG).code == NOT_STARTED


def graded(folder: Path, script: str) -> float:
    (folder / "grade.sh").write_text(script)
    (work := folder / "run" / "work").mkdir(parents=True, exist_ok=True)
    return SuiteTask(0, folder).reward("printed", work)


def test_a_grader_that_hangs_in_a_child_fails_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "GRADER_SECONDS", 0.5)
    with pytest.raises(AgentError):
        graded(tmp_path, f"sleep {LONG}\necho 1")
    monkeypatch.setattr(suite, "GRADER_SECONDS", LONG)
    assert graded(tmp_path, f"sleep {LONG} &\necho 0.25") == 0.25


def test_a_grader_that_needs_a_missing_program_fails_its_task(tmp_path: Path) -> None:
    with pytest.raises(AgentError):
        graded(tmp_path, "no-such-program-anywhere")


def test_files_that_cannot_be_copied_fail_their_task(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "task.md").write_text("task")
    (work := tmp_path / "run" / "work").mkdir(parents=True)
    with pytest.raises(AgentError):
        CommandAgent((sys.executable, "-c", "")).run(SuiteTask(0, tmp_path), work, "http://127.0.0.1:9")
