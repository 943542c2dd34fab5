"""Studies in the background: start the commands, follow their progress, stop them.

The program's own commands do the work in a separate process, one after the other, so a study from a page equals one from a terminal.
Invariant: at most one job runs at a time, and a stopped job keeps the hidden states it finished, so that starting it again continues
from there.
"""

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pamer_lab.config import WORKSPACE_VARIABLE
from pamer_lab.jobs import LINES_VARIABLE, Line, OneAtATime, Process, Work
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

STOPPED = "stopped; finished hidden states are kept, and starting again continues from there"


@dataclass
class Job(Work):
    """A list of commands, running or ended."""

    commands: tuple[tuple[str, ...], ...]
    """Words after `pamer-lab`."""
    said: str = field(default="", compare=False)
    """The last message of the command."""
    number: int = field(default=0, compare=False)
    """Index of the current command."""
    study_ids: list[str] = field(default_factory=list, compare=False)
    """Studies that are finished."""
    began: float = field(default_factory=time.monotonic, compare=False)

    @property
    def words(self) -> str:
        """The current command, as typed in a terminal."""
        return shlex.join(["pamer-lab", *self.commands[min(self.number, len(self.commands) - 1)]])


class StudyJobs(OneAtATime[Job]):
    """The jobs of one workspace, one at a time."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self.workspace = workspace

    def start(self, commands: Sequence[Sequence[str]]) -> Job:
        """Start a job, or queue it behind the running one. The same job is not queued twice."""
        refuse_in_reviewer_mode("Starting a study", self.workspace)
        return self.queue(lambda: Job(tuple(tuple(command) for command in commands)), self._run)

    def _run(self, job: Job) -> None:
        for number, command in enumerate(job.commands):
            if job.error or job.stopping.is_set():
                break
            job.number, job.progress, job.said = number, None, ""
            self._one(job, command)
        if job.stopping.is_set():
            job.error = STOPPED

    def _one(self, job: Job, command: Sequence[str]) -> None:
        environment = os.environ | {WORKSPACE_VARIABLE: str(self.workspace), LINES_VARIABLE: "1"}
        process = Process("pamer_lab.cli", *command, environment=environment)
        process.no_more()
        process.stop_on(job.stopping)
        found: Line | None = None
        for line in process.answers(Line):
            job.progress = line.progress  # a message ends the stage that the last progress belonged to
            job.said = line.said or job.said
            if line.result is not None or line.error:
                found = line
        code = process.wait()
        if found is not None and found.result is not None:
            job.study_ids.append(str(found.result["study_id"]))
        else:
            job.error = found.error if found is not None else f"the study exited with code {code} and no message"
