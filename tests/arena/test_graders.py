"""A grader that hangs or cannot run, and files that cannot be copied, fail their task with a reason."""

import sys
from pathlib import Path

import pytest

from pamer_lab.arena import suite
from pamer_lab.arena.agents import AgentError
from pamer_lab.arena.command import CommandAgent
from pamer_lab.arena.suite import SuiteTask

LONG = 600
"""Seconds that a test would take if nothing ended the grader."""


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
