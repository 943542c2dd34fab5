"""Folders in which a program keeps one conversation as many small files: Strands sessions and opencode's storage.

Knows names only, never contents. Invariant: no link is followed, so that nothing outside the folder is a piece of it.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pamer_lab.opening import regular

MESSAGE_FILE = re.compile(r"^message_(\d{1,18}+)\.json$")
STORED = ("session", "info", "message", "part")
"""Folders of opencode's storage that hold sessions, their messages, and the parts of each message."""
BESIDE = {"agent.json": "messages", "session.json": "agents"}
"""Files of a Strands session that hold no message, and the folder beside them that does."""


def is_joined(folder: Path) -> bool:
    """Whether the files below a folder are pieces of conversations."""
    return _is_storage(folder) or (folder.name == "messages" and any(MESSAGE_FILE.match(child.name) for child in folder.iterdir()))


def is_beside(file: Path) -> bool:
    """Whether a file only describes the session whose pieces are in a folder beside it."""
    return file.name in BESIDE and (file.parent / BESIDE[file.name]).is_dir()


def pieces(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name below the folder, file) of every piece; messages in the order of their numbers."""
    if _is_storage(folder):
        for kind in STORED:
            yield from ((file.relative_to(folder).as_posix(), file) for file in _below(folder / kind))
        return
    numbered = [(int(match[1]), child) for child in folder.iterdir() if (match := MESSAGE_FILE.match(child.name))]
    yield from ((child.name, child) for _, child in sorted(numbered))


def _is_storage(folder: Path) -> bool:
    return (folder / "message").is_dir() and (folder / "part").is_dir()


def _below(folder: Path) -> Iterator[Path]:
    if folder.is_symlink():
        return
    for here, folders, names in os.walk(folder):
        folders.sort()
        yield from (path for name in sorted(names) if name.endswith(".json") and regular(path := Path(here, name)))
