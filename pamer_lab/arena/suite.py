"""Tasks for agent programs: a folder of your own tasks with a grader, or the arena's worlds with their tools as a command.

A suite's folder has one folder per task, with the task in `task.md`, `task.txt`, `instruction.md` or `prompt.txt`, and the files for the
agent in `files/`. The grader prints the reward as JSON (a number, or an object with `reward` or `score`), alone or on its last line;
otherwise its exit code decides.
Invariant: the agent works on a copy that contains only the task and `files/`, and no link leads out of the suite.
"""

import json
import math
import os
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from pamer_lab.arena.agents import AgentError
from pamer_lab.arena.programs import NOT_RUN, run_limited
from pamer_lab.arena.world import Task
from pamer_lab.errors import InputError
from pamer_lab.opening import below, read_file, refuse_special_files

NAMES = ("task.md", "task.txt", "instruction.md", "prompt.txt")
FILES, GRADERS = "files", ("grade.py", "grade.sh")
FILE_BYTES = 500_000_000
"""Maximum size of a task's file, in bytes."""
GRADER_SECONDS = 120.0
SHOWN = 200
"""Characters of a grader's verdict that an error message repeats."""


class AnyTask(Protocol):
    """A task that a program can be given."""

    @property
    def number(self) -> int: ...
    @property
    def task_id(self) -> str: ...
    def prepare(self, work: Path) -> Path:
        """Fill the work folder; returns the file with the task."""
        ...

    def variables(self) -> dict[str, str]:
        """Further variables of the program."""
        ...

    def reward(self, printed: str, work: Path) -> float:
        """A reward from 0 to 1; `AgentError` if there is none."""
        ...

    def counted(self, share: float) -> float:
        """The task's reward from its share: all or nothing, or the share itself."""
        ...


@dataclass(frozen=True)
class WorldTask:
    """One of the arena's own tasks; its tools are a command that prints their results."""

    task: Task

    @property
    def number(self) -> int:
        return self.task.number

    @property
    def task_id(self) -> str:
        return self.task.task_id

    def prepare(self, work: Path) -> Path:
        system, asked = self.task.opening()
        listed = "\n".join(f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters)}" for tool in self.task.tools)
        how = f"The tools, by a shell command: $PAMER_TOOLS NAME 'ARGUMENTS AS JSON'\n{listed}\nPrint the answer line."
        path = work / NAMES[0]
        path.write_text(f"{system.content}\n\n{asked.content}\n\n{how}\n", encoding="utf-8")
        return path

    def variables(self) -> dict[str, str]:
        here = str(Path(__file__).parents[2])
        words = [sys.executable, "-m", "pamer_lab.arena.tool", self.task.level.name, str(self.task.seed), str(self.number)]
        path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))
        return {"PAMER_TOOLS": shlex.join(words), "PYTHONPATH": path}

    def reward(self, printed: str, work: Path) -> float:
        if not printed.strip():
            raise AgentError("the agent gave no answer")
        return self.task.grade(printed).share

    def counted(self, share: float) -> float:
        return float(share == 1.0)


@dataclass(frozen=True)
class SuiteTask:
    """One task folder of a suite."""

    number: int
    folder: Path
    grader: tuple[str, ...] = ()

    @property
    def task_id(self) -> str:
        return self.folder.name

    @property
    def file(self) -> Path:
        return next(self.folder / name for name in NAMES if (self.folder / name).is_file())

    def prepare(self, work: Path) -> Path:
        if (given := self.folder / FILES).is_dir():
            shutil.copytree(given, work, dirs_exist_ok=True)
        return Path(shutil.copyfile(self.file, work / self.file.name))

    def variables(self) -> dict[str, str]:
        return {}

    def reward(self, printed: str, work: Path) -> float:
        answer = work.parent / "answer.txt"
        answer.write_text(printed, encoding="utf-8")
        places = {"PAMER_TASK_FOLDER": self.folder, "PAMER_TASK_ID": self.task_id, "PAMER_WORK_DIR": work, "PAMER_ANSWER_FILE": answer}
        environment = dict(os.environ) | {name: str(value) for name, value in places.items()}
        code, verdict, complaint = run_limited(self._words(), environment, work, GRADER_SECONDS, kept=work.parent)
        if code is None:
            raise AgentError(f"the grader failed: it did not finish within {GRADER_SECONDS:g} seconds, or printed too much")
        if code == NOT_RUN:
            raise AgentError(f"the grader failed: {complaint[:200]}")
        return read_reward(verdict, code)

    def _words(self) -> list[str]:
        if self.grader:
            return [word.replace("{task}", str(self.folder)).replace("{work}", ".") for word in self.grader]
        own = next(self.folder / name for name in GRADERS if (self.folder / name).is_file())
        return [sys.executable if own.suffix == ".py" else "sh", str(own)]

    def counted(self, share: float) -> float:
        return share


def read_reward(printed: str, code: int) -> float:
    """A grader's verdict: its output, or the last line of it, as JSON; else its exit code."""
    verdict = _verdict(printed)
    named = [verdict[name] for name in ("reward", "score") if name in verdict] if isinstance(verdict, dict) else []
    if not named and (isinstance(verdict, bool) or not isinstance(verdict, int | float)):
        return float(code == 0)
    reward = named[0] if named else verdict
    if not isinstance(reward, int | float) or not math.isfinite(reward) or not 0 <= reward <= 1:
        raise AgentError(f"the grader failed: a reward is a number from 0 to 1, not {str(reward)[:SHOWN]!r}")
    return float(reward)


def _verdict(printed: str) -> Any:
    """The JSON that a grader printed; None if there is none."""
    for text in (printed, *printed.strip().splitlines()[-1:]):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return None


def read_suite(folder: str, grader: str = "") -> list[SuiteTask]:
    """The tasks of a folder, sorted by name; `InputError` if there are none, or if a task has no grader."""
    root, words = Path(folder).resolve(), tuple(shlex.split(grader))
    if not root.is_dir():
        raise InputError("is not a folder", path=folder)
    found = [path for path in sorted(root.iterdir()) if path.is_dir() and any((path / name).is_file() for name in NAMES)]
    if not found:
        raise InputError(f"has no task: a task is a folder with {', '.join(NAMES[:-1])} or {NAMES[-1]}", path=folder)
    for path in found:
        if not words and not any((path / name).is_file() for name in GRADERS):
            raise InputError(f"task {path.name!r} has no {' or '.join(GRADERS)}; or name a grader for all tasks with --grader", path=folder)
        _refuse_strange_files(path, root)
    return [SuiteTask(number, path, words) for number, path in enumerate(found)]


def _refuse_strange_files(folder: Path, root: Path) -> None:
    """Raise `InputError` if a task contains pipes, devices, or links out of the suite, which the agent would follow."""
    refuse_special_files(folder)
    for path in folder.rglob("*"):
        if path.is_symlink():
            below(path, [root])
        elif path.is_dir():
            refuse_special_files(path)


def suite_name(tasks: list[SuiteTask]) -> str:
    """The folder's name and a hash of tasks, files and graders, so that each version is a separate arena."""
    digest = sha256("\0".join(tasks[0].grader).encode())
    for task in tasks:
        for path in sorted(path for path in task.folder.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(task.folder.parent)}\0".encode() + sha256(read_file(path, FILE_BYTES)).digest())
    return f"{tasks[0].folder.parent.name}-{digest.hexdigest()[:8]}"
