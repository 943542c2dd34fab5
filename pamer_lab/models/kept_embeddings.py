"""An embedder with a cache: each distinct text is embedded once per workspace and embedding model.

On disk: table `text_embeddings`, one row per embedding model and text (by hash), the vector as float32 bytes, written in batches. Texts
of similar length are embedded together, since a batch is as long as its longest text. A vector that cannot be stored is still returned:
the cache saves time, and nothing depends on it.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from pamer_lab.bounded import Bounded
from pamer_lab.errors import LabError
from pamer_lab.models.embedder import Embedder, Matrix
from pamer_lab.storage import Database, TableSpec, is_in

EMBEDDINGS = TableSpec(
    name="text_embeddings",
    key=("key",),
    schema=pa.schema([("key", pa.string()), ("embedder", pa.string()), ("vector", pa.binary())]),
)
BATCH = 64
"""Texts per commit."""
OLDEST = 20.0
"""Seconds that a vector may wait for its commit while more are being embedded."""
KEYS_PER_QUERY = 2_000
KEPT = 16_384
"""Vectors kept in memory."""


class KeptEmbeddings:
    """Embeds only texts whose vectors neither this process nor the workspace has."""

    def __init__(self, embedder: Embedder, database: Database | None = None) -> None:
        self._embedder = embedder
        self._database = database
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self._known: Bounded[str, Matrix] = Bounded(KEPT)
        self._waiting: dict[str, Matrix] = {}
        """Vectors that are not stored yet."""
        self._work = (0, 0.0)
        self._since = time.monotonic()
        self._lock = threading.RLock()

    @classmethod
    def over(cls, embedder: Embedder, database: Database | None = None) -> "KeptEmbeddings":
        """The embedder with a cache; one that already has a cache is returned as it is."""
        return embedder if isinstance(embedder, KeptEmbeddings) else cls(embedder, database)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """[n, dimensions], in the order of the texts."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        keys = [self._key(text) for text in texts]
        with self._lock:
            found = self._found(dict(zip(keys, texts, strict=True)))
        return np.stack([found[key] for key in keys])

    __call__ = embed

    def work_done(self) -> tuple[int, float]:
        """Characters embedded since the last time this was asked, and the seconds it took."""
        with self._lock:
            work, self._work = self._work, (0, 0.0)
        return work

    def missing(self, texts: Sequence[str]) -> dict[str, str]:
        """Key -> text of those that neither this process nor the workspace has."""
        wanted = {self._key(text): text for text in texts}
        with self._lock:
            known = self._read(list(wanted))
        return {key: text for key, text in wanted.items() if key not in known}

    def warm(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> int:
        """Make sure that all texts are embedded; returns how many were missing."""
        missing = self.missing(texts)
        with self._lock:
            self._embedded(missing, progress)
            self.flush()
        return len(missing)

    def flush(self) -> None:
        """Store the waiting vectors; nothing happens if the workspace is gone or cannot be written."""
        with self._lock:
            rows = [{"key": key, "embedder": self.name, "vector": vector.astype("<f4").tobytes()} for key, vector in self._waiting.items()]
            self._waiting, self._since = {}, time.monotonic()
            if rows and self._database is not None and self._is_there():
                try:
                    self._database.upsert(EMBEDDINGS, rows)
                except LabError:
                    return

    def _is_there(self) -> bool:
        return self._database is not None and ("://" in self._database.uri or Path(self._database.folder).is_dir())

    def _found(self, wanted: dict[str, str]) -> dict[str, Matrix]:
        found = self._read(list(wanted))
        return found | self._embedded({key: text for key, text in wanted.items() if key not in found})

    def _embedded(self, missing: dict[str, str], progress: Callable[[int, int], None] | None = None) -> dict[str, Matrix]:
        found: dict[str, Matrix] = {}
        ordered = sorted(missing, key=lambda key: len(missing[key]))
        for start in range(0, len(ordered), BATCH):
            batch, began = ordered[start : start + BATCH], time.perf_counter()
            texts = [missing[key] for key in batch]
            fresh = dict(zip(batch, self._embedder.embed(texts), strict=True))
            self._work = (self._work[0] + sum(map(len, texts)), self._work[1] + time.perf_counter() - began)
            found |= fresh
            self._known.update(fresh)
            self._waiting |= fresh
            if len(self._waiting) >= BATCH or time.monotonic() - self._since > OLDEST:
                self.flush()
            if progress:
                progress(start + len(batch), len(missing))
        return found

    def _read(self, keys: Sequence[str]) -> dict[str, Matrix]:
        """Those of the keys that are known, from memory or the workspace."""
        found = {key: self._known[key] for key in keys if key in self._known}
        left = [key for key in keys if key not in found]
        if self._database is None or not left or not self._is_there() or not self._database.exists(EMBEDDINGS):
            return found
        for start in range(0, len(left), KEYS_PER_QUERY):
            where = is_in("key", left[start : start + KEYS_PER_QUERY])
            for row in self._database.rows(EMBEDDINGS, where=where, columns=["key", "vector"]):
                found[row["key"]] = self._known[row["key"]] = np.frombuffer(row["vector"], dtype="<f4").astype(np.float32)
        return found

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self.name}\0{text}".encode("utf-8", "replace")).hexdigest()
