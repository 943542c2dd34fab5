"""Detects changes to a folder of prepared weights: `sealed.json` has the SHA-256, size and time of each file.

`pamer-lab prepare` writes it with the files; every load compares. Hashing half a gigabyte takes longer than loading it, so only a file
whose size or time differs from the seal is hashed. A changed or truncated file is rejected with the command that recreates it. A folder
without a seal is sealed as it is.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from pamer_lab.errors import ModelError

SEAL = "sealed.json"


def sha256_of(path: Path) -> str:
    """A file's hash, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def seal(folder: Path) -> None:
    """Write down what the folder holds now."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SEAL)
    entries = {path.name: {"sha256": sha256_of(path), **_looks(path)} for path in files}
    draft = folder / f"{SEAL}.new"
    draft.write_text(json.dumps(entries, indent=1))
    draft.replace(folder / SEAL)


def check(folder: Path, *names: str) -> None:
    """Raise `ModelError` where a file (of these names, or any) is not what was sealed."""
    if not (folder / SEAL).exists():
        _adopt(folder)
        return
    try:
        entries: dict[str, Any] = json.loads((folder / SEAL).read_text())
        wrong = next((name for name in names or entries if _differs(folder / name, entries.get(name))), None)
    except (OSError, ValueError, AttributeError, TypeError):
        wrong = SEAL
    if wrong is not None:
        raise ModelError(f"{folder / wrong} has changed since it was prepared; delete the folder and run: pamer-lab prepare")


def _adopt(folder: Path) -> None:
    try:
        seal(folder)
    except OSError:
        return  # a cache that may only be read stays as it is


def _differs(path: Path, entry: dict[str, Any] | None) -> bool:
    if entry is None:
        return path.exists()
    found = _looks(path)
    return any(found[key] != entry[key] for key in found) and sha256_of(path) != entry["sha256"]


def _looks(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
