"""Opens untrusted files: regular files only, of limited size, never outside their root.

Knows paths and descriptors, nothing of contents. Invariant: what was checked is what is read. The size and kind are those of the open
descriptor, and below a root every folder on the way is opened without following a link, so that nothing can be swapped in between.
"""

import json
import os
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pamer_lab.errors import InputError

MOST_TOML = 500_000
"""Characters of a TOML text."""
MOST_DOTS = 200
"""Dots in a line of TOML: `tomllib` takes time quadratic in the parts of a dotted key."""
SETTINGS_BYTES = 10_000_000
"""Most bytes of a settings file: a profile, prices, a report's configuration, a study, facts of heads."""
_OPEN_ALREADY = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Descriptors that the caller opened: a pipe there is intended, and has a writer."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_file(path: str | Path, most: int = SETTINGS_BYTES, *, roots: Sequence[Path] = ()) -> bytes:
    """A file's bytes, never more than `most`; with `roots` only of a file below one of them, wherever links lead.

    Raises `InputError` with the path; a missing file stays a `FileNotFoundError`.
    """
    try:
        descriptor = _open_below(Path(path), roots) if roots else _open(Path(path))
        with os.fdopen(descriptor, "rb") as stream:
            size = os.fstat(descriptor).st_size
            if size > most:
                raise InputError(f"{_mb(size)} is over the limit of {_mb(most)}; split it, or raise PAMER_LAB_MAX_FILE_MB")
            os.set_blocking(descriptor, True)
            data = stream.read(size or most + 1)  # a pipe has no size
    except InputError as error:
        raise error.at(path=str(path)) from error
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", path=str(path)[:300]) from error
    if len(data) > most:
        raise InputError(f"is longer than the limit of {_mb(most)}; split it, or raise PAMER_LAB_MAX_FILE_MB", path=str(path))
    return data


def read_text(path: str | Path, most: int = SETTINGS_BYTES, *, roots: Sequence[Path] = ()) -> str:
    """`read_file` as text; what is not UTF-8 is an `InputError`."""
    try:
        return read_file(path, most, roots=roots).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start}); save it as UTF-8", path=str(path)) from error


def parse_json(text: str | bytes) -> Any:
    """The value of a small JSON text; deep nesting and overlong numbers are a `ValueError`, like every other fault."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a small TOML text; every fault is a `ValueError`."""
    if len(text) > MOST_TOML:
        raise ValueError(f"it is longer than {MOST_TOML:,} characters")
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise ValueError(f"a line has more than {MOST_DOTS} dots; write a long text over several lines")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def regular(path: Path) -> bool:
    """Whether a path is an ordinary file; a link counts as its target."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def refuse_special_files(folder: Path) -> None:
    """Raise `InputError` if a folder holds a pipe, socket or device, which would block a program that opens all its files."""
    for path in folder.iterdir():
        try:
            mode = path.stat().st_mode
        except OSError:
            continue  # a dangling link cannot be opened
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InputError(f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file; remove it", path=str(path))


def below(path: Path, roots: Sequence[Path]) -> Path:
    """The path with its links resolved, if that is a root or below one; otherwise an `InputError` that names the roots."""
    try:
        real = Path(os.path.realpath(path.expanduser()))
        kept = [Path(os.path.realpath(root)) for root in roots]
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"is not a path ({error})", path=str(path)[:300]) from error
    if not any(real == root or root in real.parents for root in kept):
        raise InputError(f"is outside the folders that may be read: {', '.join(map(str, kept)) or 'none'}", path=str(path)[:300])
    return real


def _open(path: Path) -> int:
    pipes = str(path).startswith(_OPEN_ALREADY)
    _refuse(path.stat().st_mode, pipes)  # before it is opened: opening a device may have side effects
    return _checked(os.open(path, _FLAGS), pipes)


def _open_below(path: Path, roots: Sequence[Path]) -> int:
    real = below(path, roots)
    root = next(kept for kept in (Path(os.path.realpath(root)) for root in roots) if real == kept or kept in real.parents)
    _refuse(real.lstat().st_mode, pipes=False)
    if real == root:
        return _checked(os.open(real, _FLAGS | os.O_NOFOLLOW), pipes=False)
    *folders, name = real.relative_to(root).parts
    at = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return _checked(os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=at), pipes=False)
    finally:
        os.close(at)


def _checked(descriptor: int, pipes: bool) -> int:
    try:
        _refuse(os.fstat(descriptor).st_mode, pipes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse(mode: int, pipes: bool) -> None:
    if not stat.S_ISREG(mode) and not (pipes and stat.S_ISFIFO(mode)):
        raise InputError(f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
