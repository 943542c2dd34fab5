"""Runs agents and graders as processes with limits on time and output, and ends them together with their children.

Knows nothing about tasks. Invariant: output is read from the files that the program was given, even if it replaces them.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

MOST_PRINTED = 500_000_000
"""Bytes that a program may print before it is ended."""
MOST_READ = 1_000_000
"""Bytes that are read from the end of its output."""
LOOK_SECONDS = 0.5
NOT_RUN = 127
"""Exit code if the program cannot be run, as in shells."""


def run_limited(
    words: Sequence[str], environment: Mapping[str, str], work: Path, seconds: float, *, kept: Path | None = None
) -> tuple[int | None, str, str]:
    """Exit code, stdout and stderr of a program; the code is None if it ran out of time or printed too much.

    `kept`: the folder for its output, if that is not `work`.
    """
    folder = kept or work
    try:
        with (folder / ".stdout").open("w+b") as stdout, (folder / ".stderr").open("w+b") as stderr:
            child = subprocess.Popen(
                words, env=environment, cwd=work, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
            )
            try:
                code = _ended(child, time.monotonic() + seconds, (stdout, stderr))
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            return code, _end_of(stdout), _end_of(stderr)
    except OSError as error:
        return NOT_RUN, "", str(error)


def _ended(child: "subprocess.Popen[bytes]", end: float, printed: Sequence[IO[bytes]]) -> int | None:
    while (left := end - time.monotonic()) > 0 and sum(os.fstat(file.fileno()).st_size for file in printed) <= MOST_PRINTED:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(min(left, LOOK_SECONDS))
    return None


def _end_of(file: IO[bytes]) -> str:
    file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_READ))
    return file.read(MOST_READ).decode(errors="replace")
