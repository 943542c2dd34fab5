"""Folders in which a program keeps one conversation as many small files: Strands sessions and opencode's storage.

Knows names only, never contents. Invariant: no link is followed, so that nothing outside the folder is a piece of it.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pamer_lab.opening import regular

MESSAGE_FILE = re.compile(r"^message_(\d{1,18}+)\.json$")
PIECE = re.compile(r"(?:^|/)(?:session|info|message|part)/.+\.json$|(?:^|/)message_\d{1,18}\.json$")
IN_STORAGE = {kind: re.compile(rf"(?:^|/){kind}/[^/]+/[^/]+\.json$") for kind in ("message", "part")}
STORED = ("session", "info", "message", "part")
"""Folders of opencode's storage that hold sessions, their messages, and the parts of each message."""
BESIDE = {"agent.json": "messages", "session.json": "agents"}
"""Files of a Strands session that hold no message, and the folder next to them that does."""


def is_joined(folder: Path) -> bool:
    """Whether the files below a folder are pieces of conversations."""
    return _is_storage(folder) or (folder.name == "messages" and any(MESSAGE_FILE.match(child.name) for child in folder.iterdir()))


def is_beside(file: Path) -> bool:
    """Whether a file only describes the session whose pieces are in a folder next to it."""
    return file.name in BESIDE and (file.parent / BESIDE[file.name]).is_dir()


def may_be_piece(name: str) -> bool:
    """Whether an uploaded file may be a piece of a conversation, or describe one, by its name."""
    return bool(PIECE.search(name)) or name.rpartition("/")[2] in BESIDE


def group_names(names: Iterable[str]) -> dict[str, str]:
    """Uploaded name -> the folder that it is a piece of, in the order of the pieces; other names are left out."""
    found = sorted(names)
    messages, parts = ({name.partition(f"{kind}/")[0] for name in found if IN_STORAGE[kind].search(name)} for kind in ("message", "part"))
    joined: dict[str, str] = {}
    for folder in sorted(messages & parts):
        for kind in STORED:
            joined |= {name: folder for name in found if name.startswith(f"{folder}{kind}/") and name.endswith(".json")}
    numbered = [(int(match[1]), name) for name in found if name not in joined and (match := MESSAGE_FILE.match(name.rpartition("/")[2]))]
    return joined | {name: f"{name.rpartition('/')[0]}/" for _, name in sorted(numbered)}


def is_described(name: str, folders: Collection[str]) -> bool:
    """Whether an uploaded file only describes a session whose messages came with it."""
    folder, _, last = name.rpartition("/")
    return last in BESIDE and any(other.startswith(f"{folder}/{BESIDE[last]}/".lstrip("/")) for other in folders)


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
