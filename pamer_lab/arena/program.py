"""Runs an agent's program or a grader: in its own process group, with a limit for its time and for what it prints.

Invariant: it comes back when the time is over, whatever the program has started, printed or deleted.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PRINTED_BYTES = 100_000_000
"""What a program may print before it is ended; a program that prints without end would fill the disk."""
KEPT_BYTES = 1_000_000
"""Of what it printed, the end that is read."""
NOT_STARTED = 127
"""Exit code of a program that cannot be started, as in a shell."""
LOOK_EVERY = 0.1
"""Longest time between two looks at what a program has printed, in seconds."""


@dataclass(frozen=True)
class Ran:
    """How a program ended."""

    code: int | None
    """Its exit code; None where it was ended."""
    said: str = ""
    complaint: str = ""
    """The end of its standard error."""
    why: str = ""
    """Why it was ended."""


def run_program(words: Sequence[str], environment: dict[str, str], folder: Path, seconds: float) -> Ran:
    """Run a program without input; its process group ends with it. Output goes to files, which no grandchild can keep open for us."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                words, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            return Ran(NOT_STARTED, complaint=str(error))
        try:
            why = _watch(child, seconds, (out, err))
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            code = child.wait()
        return Ran(None if why else code, _end(out), _end(err), why)


def _watch(child: "subprocess.Popen[bytes]", seconds: float, printed: Sequence[IO[bytes]]) -> str:
    """Wait for the program; why it has to be ended, or nothing where it ended by itself."""
    until, wait = time.monotonic() + seconds, 0.005
    while child.poll() is None:
        if sum(os.fstat(stream.fileno()).st_size for stream in printed) > PRINTED_BYTES:
            return f"had printed more than {PRINTED_BYTES // 1_000_000} MB"
        left = until - time.monotonic()
        if left <= 0:
            return f"was not done after {seconds:g} seconds"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(min(left, wait))
        wait = min(LOOK_EVERY, wait * 2)
    return ""


def _end(stream: IO[bytes]) -> str:
    size = os.fstat(stream.fileno()).st_size
    stream.seek(max(0, size - KEPT_BYTES))
    return stream.read(KEPT_BYTES).decode(errors="replace")
