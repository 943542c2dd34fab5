"""Arenas in the workspace: one folder each, with its configuration and one JSON line per finished episode.

`arena/<id>/arena.json` names agent, seed, level, profile and heads, whose hash is the id; `episodes.jsonl` grows line by line, so that a
stopped run can resume and a later one can add tasks or policies. Invariant: a line that was cut off by a crash is skipped, and its episode
is played again. If the workspace is in an object store, both are also rows of two tables, from which other machines' arenas are copied to
the local folder when arenas are listed.
"""

import re
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import msgspec
import pyarrow as pa
from filelock import FileLock, Timeout
from msgspec import Struct

from pamer_lab.arena.episode import Episode
from pamer_lab.arena.world import VERSION, Level, Task
from pamer_lab.errors import FormatError, InputError
from pamer_lab.opening import read_file
from pamer_lab.storage import TableSpec, equals
from pamer_lab.storage.files import write_whole
from pamer_lab.workspace import Workspace

INFO, EPISODES = "arena.json", "episodes.jsonl"
ARENA_ID = re.compile(r"w-[0-9a-f]{12}")

ARENAS = TableSpec("arenas", pa.schema([("arena_id", pa.string()), ("body", pa.large_binary())]), ("arena_id",))
SHARED_EPISODES = TableSpec(
    "arena_episodes",
    pa.schema([("arena_id", pa.string()), ("task", pa.int64()), ("policy", pa.string()), ("body", pa.large_binary())]),
    ("arena_id", "task", "policy"),
)
_fetched: dict[Path, int] = {}
"""Local folder -> version of the shared episodes it was last updated to."""


class ArenaInfo(Struct, frozen=True, omit_defaults=True):
    """What all episodes of an arena share."""

    agent: str
    seed: int
    level: str
    profile: str
    tokenizer: str
    simulated: bool
    """Whether the agent is a simulated one, such as `reader`; its numbers are then labelled simulated."""
    heads: str = ""
    version: int = VERSION

    @property
    def arena_id(self) -> str:
        return "w-" + sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:12]

    def task(self, number: int) -> Task:
        return Task(self.seed, number, Level.parse(self.level))


class ArenaStore:
    """Writes and reads the arenas of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.folder = workspace.path / "arena"
        self._shared = workspace.database if workspace.remote else None

    def open(self, info: ArenaInfo) -> str:
        """Create the arena's folder if it is new; returns its id."""
        path = self.folder / info.arena_id / INFO
        if not path.exists():
            write_whole(path, msgspec.json.encode(info), parents=True)
        if self._shared:
            self._shared.insert(ARENAS, [{"arena_id": info.arena_id, "body": msgspec.json.encode(info)}])
        return info.arena_id

    def lock(self, arena_id: str) -> AbstractContextManager[object]:
        """Lock the arena until the `with` block ends: only one process at a time plays in it."""
        try:
            return FileLock(self.folder / arena_id / ".lock").acquire(timeout=0)
        except Timeout as error:
            raise InputError(f"arena {arena_id} is being played by another process; wait until it ends, or stop it") from error

    def ids(self) -> list[str]:
        """Ids of all arenas, the most recently played first."""
        self._fetch()
        found = [path.parent for path in self.folder.glob(f"*/{INFO}")] if self.folder.is_dir() else []
        return [path.name for path in sorted(found, key=lambda path: (-_changed(path), path.name))]

    def info(self, arena_id: str) -> ArenaInfo:
        if arena_id not in self.ids():
            raise InputError(f"arena {arena_id[:60]!r} is not in this workspace; `pamer-lab arena` plays one and prints its id")
        path = self.folder / arena_id / INFO
        try:
            return msgspec.json.decode(read_file(path), type=ArenaInfo)
        except msgspec.DecodeError as error:
            raise FormatError(f"is not an arena ({error})", path=str(path)) from error

    def add(self, arena_id: str, episode: Episode) -> None:
        path = self.folder / arena_id / EPISODES
        line = msgspec.json.encode(episode) + b"\n"
        whole = not path.exists() or _ends_whole(path)
        with path.open("ab") as stream:
            stream.write(line if whole else b"\n" + line)
        if self._shared:
            row = {"arena_id": arena_id, "task": episode.task, "policy": episode.policy, "body": msgspec.json.encode(episode)}
            self._shared.upsert(SHARED_EPISODES, [row])

    def _fetch(self) -> None:
        """Bring arenas and episodes of other machines into the local folder."""
        if self._shared is None:
            return
        at = self._shared.version(SHARED_EPISODES)
        if _fetched.get(self.folder) == at:
            return
        for row in self._shared.rows(ARENAS):
            if not ARENA_ID.fullmatch(row["arena_id"]):
                continue  # it becomes a folder name, and anyone with write access to the store may have made the row
            path = self.folder / row["arena_id"] / INFO
            if not path.exists():
                write_whole(path, row["body"], parents=True)
            lines = [entry["body"] + b"\n" for entry in self._shared.rows(SHARED_EPISODES, where=equals("arena_id", row["arena_id"]))]
            write_whole(path.with_name(EPISODES), b"".join(lines))
        _fetched[self.folder] = at

    def episodes(self, arena_id: str) -> list[Episode]:
        """The newest episode of each task and policy, in order of task and first appearance of the policy."""
        path = self.folder / arena_id / EPISODES
        found: dict[tuple[int, str], Episode] = {}
        if path.exists():
            with path.open("rb") as stream:  # read line by line: the file grows with the tasks
                for line in stream:
                    try:
                        episode = msgspec.json.decode(line, type=Episode)
                    except (msgspec.DecodeError, UnicodeDecodeError):
                        continue  # cut off by a crash
                    found[episode.task, episode.policy] = episode
        order = {policy: number for number, policy in enumerate(dict.fromkeys(policy for _, policy in found))}
        return sorted(found.values(), key=lambda episode: (episode.task, order[episode.policy]))


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(0, 2)
        if not stream.tell():
            return True
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"


def _changed(folder: Path) -> float:
    path = folder / EPISODES
    return path.stat().st_mtime if path.exists() else 0.0
