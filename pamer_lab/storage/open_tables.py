"""The open tables of a LanceDB database: connecting, opening, creating and migrating them; a fault of the engine becomes one sentence."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from pamer_lab.config import local_folder, object_store
from pamer_lab.errors import LabError, StorageError
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.storage import faults
from pamer_lab.storage.specs import TableSpec, made, migrate

OPEN_ATTEMPTS = 8
"""How often to try opening a table that another process is just creating: its folder exists before its first version."""


class Tables:
    """The open tables of one database, shared by the threads of a process: each is opened, created or migrated when first used."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.folder = local_folder(uri.rpartition("/")[0]) if object_store(uri) else Path(uri).parent
        """The workspace folder that the database is in; for an object store, its local folder."""
        self._open: dict[str, Any] = {}
        self._made: dict[str, str] = {}
        self._lock = threading.RLock()

    def get(self, spec: TableSpec) -> Any:
        """The open LanceDB table, created or migrated if need be."""
        with self._lock:
            if spec.name not in self._open:
                self._open[spec.name] = self._opened(spec)
                self._made[spec.name] = made(spec, self._open[spec.name])
            return self._open[spec.name]

    def made(self, spec: TableSpec) -> str:
        """The random name that tells an open table from an earlier one of the same name; empty if its creator wrote none."""
        return self._made.get(spec.name, "")

    def forget(self, name: str) -> None:
        """Drop a handle, so that the next use opens the table again."""
        with self._lock:
            self._open.pop(name, None)

    def exists(self, spec: TableSpec) -> bool:
        """Whether the table exists, which one that this process has open does."""
        return spec.name in self._open or spec.name in self._names()

    def unwritten(self, spec: TableSpec) -> bool:
        """Whether the table does not exist; reading does not create it, and finds it empty."""
        return not self.exists(spec)

    def refuse(self, spec: TableSpec) -> None:
        """Refuse in reviewer mode to write a table that reviewers may not."""
        if not spec.reviewers_write:
            refuse_in_reviewer_mode(f"Writing the table {spec.name!r}", self.folder)

    def fault(self, spec: TableSpec, action: str, error: Exception) -> StorageError:
        """The sentence for a fault of the engine; handles that it may have made stale are forgotten."""
        with self._lock:
            self._open.clear()
        return StorageError(f"table {spec.name!r} at {self.uri} cannot be {action} ({faults.short(error)}){faults.advice(error)}")

    @contextmanager
    def reading(self, spec: TableSpec) -> Iterator[Any]:
        """The table for reading; faults become sentences."""
        try:
            yield self.get(spec)
        except LabError:
            raise
        except Exception as error:
            raise self.fault(spec, "read", error) from error

    @cached_property
    def _connection(self) -> Any:
        os.environ.setdefault("LANCEDB_LOG", "error")  # it warns of conflicting commits, which are retried
        import lancedb  # here: it takes seconds to import, and a workspace without tables needs none of it

        try:
            return lancedb.connect(self.uri, read_consistency_interval=timedelta(0), storage_options=_options(self.uri))
        except Exception as error:
            raise StorageError(f"the database at {self.uri} cannot be opened ({faults.short(error)}){faults.advice(error)}") from error

    def _names(self) -> list[str]:
        if "://" not in self.uri and not Path(self.uri).exists():
            return []  # Connecting would make the folder.
        try:
            return list(self._connection.list_tables().tables)
        except LabError:
            raise
        except Exception as error:
            raise StorageError(f"the database at {self.uri} cannot be listed ({faults.short(error)}){faults.advice(error)}") from error

    def _opened(self, spec: TableSpec) -> Any:
        for attempt in range(OPEN_ATTEMPTS):
            try:
                if spec.name not in self._names() or (attempt and self._never_begun(spec)):
                    self.refuse(spec)
                    return self._connection.create_table(spec.name, schema=spec.numbered_schema, exist_ok=True)
                table = self._connection.open_table(spec.name)
                migrate(spec, table, lambda: self.refuse(spec))
                return table
            except LabError:
                raise
            except Exception as error:
                if not faults.half_made(error) or attempt == OPEN_ATTEMPTS - 1:
                    raise self.fault(spec, "opened", error) from error
                time.sleep(0.02 * (attempt + 1))
        raise AssertionError("unreachable")

    def _never_begun(self, spec: TableSpec) -> bool:
        """A folder without content: what a full disk leaves of a table that could not be created."""
        folder = Path(self.uri) / f"{spec.name}.lance"
        files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else [folder]
        return not any(path.name[:1] != "." for path in files)


def _options(uri: str) -> dict[str, str]:
    """What LanceDB does not take from the environment itself: permission to use an endpoint without TLS, and the region of a bucket with a
    dot in its name."""
    if not uri.startswith("s3://"):
        return {}
    plain = _variable("AWS_ENDPOINT_URL", "AWS_ENDPOINT").startswith("http://")
    options = {"region": _variable("AWS_REGION", "AWS_DEFAULT_REGION"), "allow_http": "true" if plain else ""}
    return {name: value for name, value in options.items() if value}


def _variable(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
