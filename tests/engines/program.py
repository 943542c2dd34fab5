"""A program whose jobs count, wait for a file, fail or kill their process."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec


class Job(msgspec.Struct, frozen=True):
    name: str
    folder: str
    """Each attempt leaves a file here."""
    deaths: int = 0
    """Attempts that kill the process."""
    faults: int = 0
    """Attempts that raise."""
    again: int = 0
    """Attempts that ask for another."""
    wait_for: str = ""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    value: str = ""
    finished: bool = False
    again: str = ""


def work(job: Job, tell: Any) -> None:
    folder = Path(job.folder)
    attempt = len(list(folder.glob(f"{job.name}.*"))) + 1
    (folder / f"{job.name}.{attempt}").touch()
    tell(Note(f"{job.name} attempt {attempt} pid {os.getpid()} threads {os.environ['OMP_NUM_THREADS']}"))
    if attempt <= job.deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    if attempt <= job.faults:
        raise ValueError("a fault of the program")
    if attempt <= job.again:
        tell(Note(again="the store was away"))
        return
    while job.wait_for and not Path(job.wait_for).exists():
        tell(Note("waiting"))
        time.sleep(0.01)
    tell(Note(finished=True))
