"""Computed vectors in the workspace: one table per model, one row per input, one column per layer and pooling.

A row's key is the hash of model, number format, serialiser version and tokens, so that equal inputs of any trace share a row,
and a changed serialiser or model finds nothing. Columns that were never asked for are null. Rows are written in batches, one
commit each: an interrupted run keeps every batch that was finished. A vector is stored as its float32 bytes (little endian):
LanceDB refuses a null in a column of float lists. `StoredStates` reads what does not fit in memory, a bounded number of rows at a time.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pamer_lab.errors import ProbeError
from pamer_lab.features.pooling import POOLINGS
from pamer_lab.features.serialise import Tokens
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.speed import shape_of
from pamer_lab.storage import Database, TableSpec, is_in

Vectors = npt.NDArray[np.float32]
KEYS_PER_QUERY = 2_000


def layer_names(model: FrozenModel) -> tuple[str, ...]:
    """`block_1` to `block_L`, then `final`."""
    return (*(f"block_{number + 1}" for number in range(model.layers)), "final")


def every_fourth(model: str) -> tuple[str, ...]:
    """`block_4`, `block_8` and so on, then `final`; empty where the model is not on this machine."""
    shape = shape_of(model)
    return (*(f"block_{number}" for number in range(4, shape.layers + 1, 4)), "final") if shape else ()


def content_key(model: FrozenModel, serialiser: str, tokens: Tokens) -> str:
    """The hash that names an input's vectors."""
    digest = hashlib.sha256(f"{model.fingerprint}|{model.dtype}|{serialiser}|".encode())
    digest.update(np.ascontiguousarray(tokens, dtype="<i4").tobytes())
    return digest.hexdigest()


class FeatureStore:
    """The vectors of one model in one database."""

    def __init__(self, database: Database, model: FrozenModel) -> None:
        self._database = database
        self._width = model.width
        self._columns = tuple(f"{layer}_{pooling}" for layer in layer_names(model) for pooling in POOLINGS)
        vector = pa.binary(model.width * 4)
        schema = pa.schema(
            [("key", pa.string()), ("model", pa.string()), ("tokens", pa.int64()), *((name, vector) for name in self._columns)]
        )
        self._spec = TableSpec(f"features_{model.fingerprint[:16]}", schema, ("key",))
        self._model = f"{model.name} {model.dtype}"

    @property
    def folder(self) -> Path:
        """The workspace."""
        return self._database.folder

    def read(self, keys: Sequence[str], columns: Sequence[str]) -> tuple[list[str], Vectors]:
        """Keys that have all the columns, and their vectors: [found, columns, width]."""
        if not keys or not self._database.exists(self._spec):
            return [], np.zeros((0, len(columns), self._width), dtype=np.float32)
        found: list[str] = []
        parts: list[Vectors] = []
        unique = list(dict.fromkeys(keys))
        for start in range(0, len(unique), KEYS_PER_QUERY):
            table = self._database.arrow(self._spec, where=is_in("key", unique[start : start + KEYS_PER_QUERY]), columns=["key", *columns])
            if table.num_rows:
                complete = np.all([table[name].is_valid().to_numpy() for name in columns], axis=0)
                table = table if complete.all() else table.filter(pa.array(complete))
                found += table["key"].to_pylist()
                parts.append(self._matrix(table, columns))
        if len(parts) == 1:
            return found, parts[0]
        return found, np.concatenate(parts) if parts else np.zeros((0, len(columns), self._width), dtype=np.float32)

    @property
    def width(self) -> int:
        """Width of every vector."""
        return self._width

    def complete(self, keys: Sequence[str], columns: Sequence[str]) -> set[str]:
        """Keys that have all the columns; no vector is read."""
        if not self._database.exists(self._spec):
            return set()
        unique = list(dict.fromkeys(keys))
        present = "".join(f" AND {name} IS NOT NULL" for name in columns)
        found: set[str] = set()
        for start in range(0, len(unique), KEYS_PER_QUERY):
            where = is_in("key", unique[start : start + KEYS_PER_QUERY]) + present
            found.update(self._database.arrow(self._spec, where=where, columns=["key"])["key"].to_pylist())
        return found

    def write(self, keys: Sequence[str], tokens: Sequence[int], columns: Sequence[str], vectors: Vectors) -> None:
        """Add vectors [n, columns, width] in one commit; columns that these rows already have are kept."""
        if not keys:
            return
        others = [name for name in self._columns if name not in columns]
        old = self._old(keys, others)
        arrays: dict[str, pa.Array] = {
            "key": pa.array(keys),
            "model": pa.array([self._model] * len(keys)),
            "tokens": pa.array(tokens, type=pa.int64()),
        }
        for number, name in enumerate(columns):
            arrays[name] = self._bytes(vectors[:, number])
        for name in others:
            arrays[name] = pa.array([old.get(key, {}).get(name) for key in keys], type=self._spec.schema.field(name).type)
        table = pa.table([arrays[name] for name in self._spec.schema.names], schema=self._spec.schema)
        self._database.upsert(self._spec, table)

    def _old(self, keys: Sequence[str], others: Sequence[str]) -> dict[str, dict[str, bytes]]:
        """Columns outside this write that rows of these keys already have."""
        if not others or not self._database.exists(self._spec):
            return {}
        rows = self._database.rows(self._spec, where=is_in("key", keys), columns=["key", *others])
        return {row["key"]: row for row in rows}

    def _bytes(self, rows: Vectors) -> pa.Array:
        data = pa.py_buffer(np.ascontiguousarray(rows, dtype="<f4").tobytes())
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(self._width * 4), len(rows), [None, data])

    def _matrix(self, table: pa.Table, columns: Sequence[str]) -> Vectors:
        rows = np.empty((table.num_rows, len(columns), self._width), dtype=np.float32)
        for number, name in enumerate(columns):
            place = 0
            for chunk in table[name].chunks:
                start, size = chunk.offset * self._width, len(chunk) * self._width
                flat = np.frombuffer(chunk.buffers()[1], dtype="<f4")[start : start + size]
                rows[place : place + len(chunk), number] = flat.reshape(-1, self._width)
                place += len(chunk)
        return rows


COPIES = 4
"""Copies of a row in memory while it is read and standardised: Arrow, NumPy, reordered, in the units of training."""


@dataclass(frozen=True)
class StoredStates:
    """Feature sets [columns, keys, width] that stay in the store; each column is a layer and a pooling."""

    store: FeatureStore
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    memory: int
    """Bytes that rows may take in memory."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.columns), len(self.keys), self.store.width

    @property
    def held(self) -> int:
        """Rows that are read at once."""
        return max(1, self.memory // (COPIES * 4 * self.store.width))

    def read(self, feature_set: int, rows: npt.NDArray[np.int64]) -> Vectors:
        """Some rows of one column, [r, width]."""
        asked = [self.keys[row] for row in rows]
        found, vectors = self.store.read(asked, [self.columns[feature_set]])
        place = {key: number for number, key in enumerate(found)}
        if missing := [key for key in asked if key not in place]:
            raise ProbeError(f"{len(missing)} states of {self.columns[feature_set]} are no longer in the store; run the command again")
        ordered: Vectors = vectors[[place[key] for key in asked], 0]
        return ordered

    def only(self, columns: Sequence[str]) -> "StoredStates":
        """The same rows of some columns."""
        return StoredStates(self.store, self.keys, tuple(columns), self.memory)
