"""The `Embedder` Protocol between texts and vectors, and the one place that chooses an implementation.

Invariant, for every implementation: rows are float32, of unit length, in the order of the texts, and the same text gives the same row
whatever else is in the call.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pamer_lab.models.profiles import Profile
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

Matrix = npt.NDArray[np.float32]

HASHING_DIMENSIONS = 256
_WORD = re.compile(r"\w+")


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    name: str
    """Model and dimensions; stored with every vector, since vectors of two models must never be compared."""
    dimensions: int

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, float32, unit length: [n, dimensions]."""
        ...


class HashingEmbedder:
    """Counts hashed words with signs: no weights, no chance, good enough to find a text by its own words."""

    def __init__(self, dimensions: int = HASHING_DIMENSIONS) -> None:
        self.dimensions = dimensions
        self.name = f"hashing-{dimensions}"

    def embed(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _WORD.findall(text.lower()) or [""]:
                digest = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
                row[digest % self.dimensions] += 1.0 if digest >> 63 else -1.0
        return normalised(rows)


def load_embedder(profile: Profile, device: str = "auto") -> Embedder:
    """The embedder a profile names, ready to use."""
    refuse_in_reviewer_mode("Loading a model")
    settings = profile.embedding
    match settings.kind:
        case "hashing":
            return HashingEmbedder(settings.dimensions or HASHING_DIMENSIONS)
        case "openai":
            from pamer_lab.models.embedding_client import EmbeddingClient

            return EmbeddingClient(settings)
        case "sentence-transformers":
            from pamer_lab.models.sentence_embedder import SentenceEmbedder

            return SentenceEmbedder(settings, device)


def normalised(rows: Matrix) -> Matrix:
    """Rows scaled to unit length; a zero row becomes the first axis, so that every row has a direction."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if rows.size:
        rows = np.where(lengths > 0, rows, np.eye(1, rows.shape[1], dtype=np.float32))
    scaled: Matrix = (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return scaled
