"""Texts -> unit vectors, each text embedded once and kept in the workspace.

On disk: table `text_embeddings`, one row per embedding model and text (by hash), the vector as float32 bytes. Written batch by batch,
so that an interrupted run goes on where it was.
"""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pamer_lab.models.embedder import Embedder
from pamer_lab.storage import Database, TableSpec, is_in

Matrix = npt.NDArray[np.float32]

EMBEDDINGS = TableSpec(
    name="text_embeddings",
    key=("key",),
    schema=pa.schema([("key", pa.string()), ("embedder", pa.string()), ("vector", pa.binary())]),
)
BATCH = 64
"""Texts per commit."""
KEYS_PER_QUERY = 2_000


class KeptEmbeddings:
    """An embedder with a memory."""

    def __init__(self, embedder: Embedder, database: Database | None = None) -> None:
        self._embedder = embedder
        self._database = database
        self._known: dict[str, Matrix] = {}

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """[n, dimensions], in the order of the texts."""
        keys = [self._key(text) for text in texts]
        if any(key not in self._known for key in keys):
            self.warm(texts)
        return np.stack([self._known[key] for key in keys])

    @property
    def name(self) -> str:
        return self._embedder.name

    def missing(self, texts: Sequence[str]) -> dict[str, str]:
        """Key -> text of those that neither this run nor the workspace has."""
        wanted = {key: text for text in texts if (key := self._key(text)) not in self._known}
        self._read(list(wanted))
        return {key: text for key, text in wanted.items() if key not in self._known}

    def warm(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> int:
        """Make sure that all texts are known; returns how many had to be embedded."""
        missing = list(self.missing(texts).items())
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            rows = self._embedder.embed([text for _, text in batch])
            self._known.update({key: row for (key, _), row in zip(batch, rows, strict=True)})
            if self._database is not None:
                stored = [
                    {"key": key, "embedder": self._embedder.name, "vector": self._known[key].astype("<f4").tobytes()} for key, _ in batch
                ]
                self._database.upsert(EMBEDDINGS, stored)
            if progress:
                progress(start + len(batch), len(missing))
        return len(missing)

    def _read(self, keys: Sequence[str]) -> None:
        if self._database is None or not keys or not self._database.exists(EMBEDDINGS):
            return
        for start in range(0, len(keys), KEYS_PER_QUERY):
            where = is_in("key", keys[start : start + KEYS_PER_QUERY])
            for row in self._database.rows(EMBEDDINGS, where=where, columns=["key", "vector"]):
                self._known[row["key"]] = np.frombuffer(row["vector"], dtype="<f4").astype(np.float32)

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._embedder.name}\0{text}".encode()).hexdigest()
