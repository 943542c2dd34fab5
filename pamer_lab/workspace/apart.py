"""Large uploads, and paths that a visitor names, read and counted in a separate process: `python -m pamer_lab.workspace.apart`.

A file that needs too much memory then ends that process, not the dashboard: it is killed at its memory limit, and is the first that the
system kills when memory runs out. A few may run at a time, so that one long import does not keep every other visitor waiting, and together
they may use no more than a share of the computer's memory.
Input: one line of JSON for the request, then for each file a line with name and size, and its bytes. Output: one line of JSON.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import psutil

from pamer_lab.config import ReadLimits
from pamer_lab.errors import InputError, LabError
from pamer_lab.jobs import own_environment
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.trajectory import Rejection
from pamer_lab.trajectory.unpacking import mb
from pamer_lab.workspace.ingest import Imported, import_paths, import_uploads
from pamer_lab.workspace.store import Workspace

SMALL_BYTES = 4_000_000
"""JSON up to this many bytes is read in this process, which saves the time to start another."""
JSON_STARTS = (b"{", b"[")
BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
TIMES_FILE = 10
"""Bytes of memory that reading may take per byte of a plain file."""
FREE_MEMORY = 600_000_000
"""Bytes that any import may take; the program with its libraries takes 200 to 300 MB."""
WATCH_SECONDS = 0.05
"""Time between two looks at the memory of the process."""

MOST_SECONDS = 600.0
"""Time that one import may take; 200 MB take about one minute."""

MOST_AT_ONCE = 3
"""Imports running at the same time, however many visitors ask."""
MEMORY_SHARE = 0.5
"""Share of the computer's memory that all running imports may use together; a single one may always run."""
WAIT_SECONDS = 1.0
"""Time between two messages to a waiting visitor."""


class Places:
    """Places for running imports, limited in number and in total memory; others wait, and the first of them that fits is next."""

    def __init__(self, most: int, memory: int) -> None:
        self._most, self._memory = most, memory
        self._working: list[int] = []
        self._waiting: list[tuple[object, int]] = []
        self._change = threading.Condition()

    @contextlib.contextmanager
    def place(self, memory: int, on_wait: Callable[[], object]) -> Iterator[None]:
        """A place for an import that may use so much memory; while it waits, `on_wait` is called every second, and may raise."""
        me = (object(), memory)
        with self._change:
            self._waiting.append(me)
            try:
                while self._next() is not me:
                    on_wait()
                    self._change.wait(WAIT_SECONDS)
                self._working.append(memory)
            finally:
                self._waiting.remove(me)
                self._change.notify_all()
        try:
            yield
        finally:
            with self._change:
                self._working.remove(memory)
                self._change.notify_all()

    def _next(self) -> tuple[object, int] | None:
        if len(self._working) >= self._most:
            return None
        free = self._memory - sum(self._working)
        return next((one for one in self._waiting if one[1] <= free or not self._working), None)


_PLACES = Places(MOST_AT_ONCE, int(MEMORY_SHARE * psutil.virtual_memory().total))


class Request(msgspec.Struct, frozen=True):
    """What to import into which workspace; with no paths, the files that follow."""

    workspace: str
    paths: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    """Folders that the paths must lie in."""


class File(msgspec.Struct, frozen=True):
    name: str
    size: int


class Answer(msgspec.Struct, frozen=True):
    traces: list[dict[str, Any]] = []
    rejected: list[Rejection] = []
    known: int = 0
    error: str = ""
    """Why nothing was imported, in a sentence."""


def import_files_apart(
    files: Sequence[tuple[str, bytes]], workspace: Workspace, *, small: int = SMALL_BYTES, on_wait: Callable[[], object] = lambda: None
) -> Imported:
    """Import uploads; what is large, or not plain JSON and may expand, is read in a separate process.

    `on_wait` is called while other imports must end first.
    """
    total = sum(len(data) for _, data in files)
    plain = all(data[:100].lstrip(BEFORE_JSON).startswith(JSON_STARTS) for _, data in files)
    if total <= small and plain:
        return import_uploads(files, workspace)
    size = max(len(data) for _, data in files) if plain else ReadLimits.from_environment().max_bytes
    return _ask(Request(str(workspace.path.absolute())), files, TIMES_FILE * size + FREE_MEMORY, on_wait)


def import_paths_apart(
    paths: Sequence[str], workspace: Workspace, roots: Sequence[Path], *, on_wait: Callable[[], object] = lambda: None
) -> Imported:
    """Import files and folders of this machine that lie below one of `roots`, in a separate process."""
    memory = TIMES_FILE * ReadLimits.from_environment().max_bytes + FREE_MEMORY
    return _ask(Request(str(workspace.path.absolute()), tuple(paths), tuple(map(str, roots))), (), memory, on_wait)


def _ask(request: Request, files: Iterable[tuple[str, bytes]], memory: int, on_wait: Callable[[], object]) -> Imported:
    """Start the process, send it the request, and read its answer; it may use `memory` bytes."""
    refuse_in_reviewer_mode("Importing traces", Path(request.workspace))
    words = [sys.executable, "-m", __spec__.name]
    with (
        _PLACES.place(memory, on_wait),
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=own_environment()) as process,
    ):
        began = time.monotonic()
        threading.Thread(target=_watch, args=(process, memory, began + MOST_SECONDS), daemon=True).start()
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died; the lack of an answer says so
            process.stdin.write(msgspec.json.encode(request) + b"\n")
            for name, data in files:
                process.stdin.write(msgspec.json.encode(File(name, len(data))) + b"\n")
                process.stdin.write(data)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        lines = process.stdout.read().splitlines()
    try:
        answer = msgspec.json.decode(lines[-1] if lines else b"", type=Answer)
    except msgspec.DecodeError:
        late = time.monotonic() - began >= MOST_SECONDS
        needed = f"took more than {MOST_SECONDS:.0f} s" if late else f"needed more than the {mb(memory)} of memory that this import may use"
        reason = f"{needed}; nothing was imported. Split the file"
        return Imported(rejected=[Rejection("upload", "", reason)])
    if answer.error:
        raise InputError(answer.error)
    return Imported(answer.traces, answer.rejected, answer.known)


def main() -> None:
    """Answer one request on standard input."""
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    with contextlib.suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    try:
        workspace = Workspace(request.workspace)
        if request.paths:
            found = import_paths(request.paths, workspace, roots=[Path(root) for root in request.roots])
        else:
            found = import_uploads(_files(sys.stdin.buffer), workspace)
        answer = Answer(found.traces, found.rejected, found.known)
    except LabError as error:
        answer = Answer(error=str(error))
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(answer) + b"\n")


def _files(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    while line := stream.readline():
        file = msgspec.json.decode(line, type=File)
        yield file.name, stream.read(file.size)


def _watch(process: "subprocess.Popen[bytes]", memory: int, end: float) -> None:
    """End the process when it uses more than `memory` bytes, or when monotonic time reaches `end`."""
    statm = Path(f"/proc/{process.pid}/statm")
    with contextlib.suppress(OSError, IndexError):  # it has ended, or this is not Linux
        while process.poll() is None:
            used = int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
            if used > memory or time.monotonic() > end:
                process.kill()
            time.sleep(WATCH_SECONDS)


if __name__ == "__main__":
    main()
