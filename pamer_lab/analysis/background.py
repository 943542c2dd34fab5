"""Studies that run beside their caller: start the commands, look at what they say, stop them.

The work is done by the program's own commands in a process of its own,
one after the other, so a page's study and a terminal's are the same. What always holds: at most one job runs at a time, and a
job that was stopped keeps the hidden states that were finished, so that starting it again goes on from there.
"""

import atexit
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pamer_lab.jobs import OneAtATime, Work
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

KEPT_LINES = 40
PATIENCE = 20.0
"""Seconds a stopped process may take to put away what it has; then it is killed."""
_SHARE = re.compile(r"\((\d+) %\)")


@dataclass
class Job(Work):
    """Some commands under way or ended."""

    commands: tuple[tuple[str, ...], ...]
    """Words after `pamer-lab`."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    """What the command said last."""
    number: int = 0
    """Which of the commands runs."""
    study_ids: list[str] = field(default_factory=list)
    """Studies that are finished."""
    began: float = field(default_factory=time.monotonic)

    @property
    def share(self) -> float | None:
        """How much of the hidden states is there, as far as the command said; None before and after that."""
        found = _SHARE.search(self.lines[-1]) if self.lines else None
        return int(found[1]) / 100 if found else None

    @property
    def words(self) -> str:
        """The command that runs, as one would type it."""
        return shlex.join(["pamer-lab", *self.commands[min(self.number, len(self.commands) - 1)]])


class StudyJobs(OneAtATime[Job]):
    """The jobs of one workspace, one at a time."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self.workspace = workspace

    def start(self, commands: Sequence[Sequence[str]]) -> Job:
        """Start a job; while one runs, that one is returned instead."""
        refuse_in_reviewer_mode("Starting a study", self.workspace)
        return self.begin(lambda: Job(tuple(tuple(command) for command in commands)), self._run)

    def _run(self, job: Job) -> None:
        try:
            for number, command in enumerate(job.commands):
                if job.error or job.stopping.is_set():
                    break
                job.number = number
                self._one(job, command)
        except OSError as error:
            job.error = f"the study could not be started ({error})"
        finally:
            if job.stopping.is_set():
                job.error = "stopped; finished hidden states are kept, and starting again continues from there"

    def _one(self, job: Job, command: Sequence[str]) -> None:
        words = [sys.executable, "-m", "pamer_lab.cli", *command, "--json"]
        environment = os.environ | {"PAMER_LAB_HOME": str(self.workspace)}
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
            atexit.register(process.kill)
            try:
                listener = threading.Thread(target=_listen, args=(process, job), daemon=True)
                listener.start()
                code = _wait(process, job)
                listener.join(timeout=2)
            finally:
                atexit.unregister(process.kill)
            out.seek(0)
            said = out.read()
        if code == 0:
            job.study_ids.append(str(json.loads(said)["study_id"]))
        elif not job.stopping.is_set():
            job.error = job.lines[-1] if job.lines else f"the study ended with code {code} without a message"


def _listen(process: "subprocess.Popen[bytes]", job: Job) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        text = line.decode("utf-8", "replace").strip().rpartition("\r")[2]
        if text:
            job.lines.append(text)


def _wait(process: "subprocess.Popen[bytes]", job: Job) -> int:
    """Wait for the end; a stop is an interrupt first, so that finished work is put away."""
    while process.poll() is None:
        if job.stopping.wait(0.2):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
    return process.wait()
