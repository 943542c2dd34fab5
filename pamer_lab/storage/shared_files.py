"""Files that all users of a workspace in an object store need (heads, profiles, price tables).

They are kept in the local folder, where everything reads them, and as rows of one table, complete or not at all. `publish` uploads
files, `withdraw` removes them from the table, `refresh` downloads what others changed. In a workspace that is a folder all three do
nothing.
"""

import time
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from pamer_lab.config import address_of
from pamer_lab.opening import read_file
from pamer_lab.storage.database import Database
from pamer_lab.storage.files import write_whole
from pamer_lab.storage.specs import TableSpec, is_in

FILES = TableSpec("shared_files", pa.schema([("path", pa.string()), ("data", pa.large_binary())]), ("path",))
FOLDERS = ("heads", "profiles", "prices")
"""Folders of a workspace whose files are shared."""
LOOK_EVERY = 5.0
"""Seconds for which the downloaded files count as current."""
_seen: dict[Path, tuple[float, int]] = {}
"""When each folder was last compared, and with which version of the table."""


def publish(folder: Path, *files: Path) -> None:
    """Upload files of a workspace's local folder."""
    if database := _database(folder):
        rows = [{"path": file.relative_to(folder).as_posix(), "data": read_file(file)} for file in files]
        database.upsert(FILES, rows)


def withdraw(folder: Path, *files: Path) -> None:
    """Remove files from the table."""
    if database := _database(folder):
        database.delete(FILES, is_in("path", [file.relative_to(folder).as_posix() for file in files]))


def refresh(folder: Path) -> None:
    """Download what changed, and remove what others have removed."""
    now, (looked, known) = time.monotonic(), _seen.get(folder, (float("-inf"), -1))
    if now - looked < LOOK_EVERY or not (database := _database(folder)):
        return
    version = database.version(FILES)
    if version != known:
        rows = {row["path"]: row["data"] for row in database.rows(FILES)}
        for name, data in rows.items():
            path = folder / name
            if name.partition("/")[0] in FOLDERS and ".." not in Path(name).parts and (not path.is_file() or read_file(path) != data):
                write_whole(path, data, parents=True)
        here = (path for part in FOLDERS for path in (folder / part).rglob("*") if path.is_file())
        for path in here:
            if path.relative_to(folder).as_posix() not in rows and known >= 0:
                path.unlink(missing_ok=True)
    _seen[folder] = (now, version)


@lru_cache(maxsize=8)
def _opened(address: str) -> Database:
    return Database(f"{address}/lance")


def _database(folder: Path) -> Database | None:
    address = address_of(folder)
    return _opened(address) if address else None
