"""Writes files completely or not at all.

The bytes go to a temporary file in the same folder, are synced, and renamed; an unfinished one is removed. So a full disk, a crash or a
second writer never leaves half a file, and an older file stays until the new one is complete.
`/dev/stdout`, pipes and other special files are written directly.
"""

import os
import tempfile
from pathlib import Path

from pamer_lab.errors import InputError
from pamer_lab.storage.faults import advice


def write_whole(path: str | Path, data: bytes, *, parents: bool = False, private: bool = False) -> None:
    """Write a file; a place that cannot be written is an `InputError` with the reason.

    `parents`: also create the folders above it. `private`: only its owner can read it.
    """
    target = Path(path)
    try:
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            if target.is_dir():
                raise InputError("is a folder; name a file", path=str(path))
            target.write_bytes(data)
            return
        _replace(target, data, private)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be written ({reason}){advice(error)}", path=str(path)[:300]) from error


def _replace(target: Path, data: bytes, private: bool) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".pamer-lab-", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if not private:  # as `mkstemp` made it
            draft.chmod(0o666 & ~_umask())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
