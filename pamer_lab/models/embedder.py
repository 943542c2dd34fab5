"""Texts -> unit vectors: the `Embedder` Protocol, a server with OpenAI's `/v1/embeddings`, a local sentence-transformers model.

Invariant, for every implementation: rows are finite float32 of unit length, in the order of the texts, and the same text gives the same
row whatever else is in the call; or it is an error. Nothing of a long text is dropped; remote code is never run.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import InputError, ModelError
from pamer_lab.models import embedded
from pamer_lab.models.attempts import BadAnswer, server_client, with_attempts
from pamer_lab.models.devices import resolve_device
from pamer_lab.models.profiles import EMBEDDED, EmbeddingSettings, Profile
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
    """Counts hashed words with signs: no weights, no randomness, good enough to find a text by its own words."""

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
            return EmbeddingClient(settings)
        case "sentence-transformers":
            return SentenceEmbedder(settings, device)


def normalised(rows: Matrix) -> Matrix:
    """Rows scaled to unit length; a zero row becomes the first axis, so that every row has a direction."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if rows.size:
        rows = np.where(lengths > 0, rows, np.eye(1, rows.shape[1], dtype=np.float32))
    scaled: Matrix = (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return scaled


TEXTS_PER_REQUEST = 64
"""Texts per request."""


class EmbeddingClient:
    """An embedding server behind the `Embedder` Protocol."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        if not settings.base_url or not settings.model or not settings.dimensions:
            raise InputError("an embedding server needs base_url, model and dimensions in its profile")
        self._settings = settings
        self.dimensions = settings.dimensions
        self.name = f"{settings.model}-{settings.dimensions}"
        self._client = server_client(settings)

    def embed(self, texts: Sequence[str]) -> Matrix:
        parts = [self._batch(list(texts[start : start + TEXTS_PER_REQUEST])) for start in range(0, len(texts), TEXTS_PER_REQUEST)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimensions), dtype=np.float32)

    def _batch(self, texts: list[str]) -> Matrix:
        what = f"embedding {len(texts)} texts at {self._settings.base_url}"
        return with_attempts(lambda: self._ask(texts), what=what, attempts=self._settings.attempts)

    def _ask(self, texts: list[str]) -> Matrix:
        answer = self._client.embeddings.create(
            model=self._settings.model, input=texts, dimensions=self.dimensions, encoding_format="float"
        )
        return normalised(self._parsed(getattr(answer, "data", None), len(texts)))

    def _parsed(self, data: Any, expected: int) -> Matrix:
        if not isinstance(data, list) or len(data) != expected:
            raise BadAnswer(f"the answer holds {len(data) if isinstance(data, list) else 'no'} vectors for {expected} texts")
        rows = np.zeros((expected, self.dimensions), dtype=np.float32)
        seen: set[int] = set()
        for item in data:
            index, vector = getattr(item, "index", None), getattr(item, "embedding", None)
            if not isinstance(index, int) or not 0 <= index < expected or index in seen:
                raise BadAnswer(f"the answer's vector numbers are wrong ({index!r})")
            if not isinstance(vector, list):
                raise BadAnswer("the answer contains something that is not a vector")
            if len(vector) != self.dimensions:
                # Another attempt gives the same length: the profile or the server must change.
                raise ModelError(f"{self._settings.model} returned {len(vector)} dimensions, but the profile expects {self.dimensions}")
            seen.add(index)
            try:
                rows[index] = vector
            except (TypeError, ValueError) as error:
                raise BadAnswer("the answer contains a vector that is not numbers") from error
        if not np.isfinite(rows).all():
            raise BadAnswer("the answer contains numbers that are not finite")
        return rows


PIECES_PER_PASS = 16
"""Pieces per forward pass."""


class SentenceEmbedder:
    """A `SentenceTransformer` behind the `Embedder` Protocol."""

    def __init__(self, settings: EmbeddingSettings, device: str = "auto") -> None:
        from sentence_transformers import SentenceTransformer

        source = str(embedded.verify(embedded.MINILM).parent) if settings.model == EMBEDDED else settings.model
        label = embedded.MINILM.name if settings.model == EMBEDDED else Path(source).name
        try:
            model: Any = SentenceTransformer(
                source,
                device=resolve_device(device),
                truncate_dim=settings.dimensions or None,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:
            raise ModelError(f"the embedding model {settings.model!r} cannot be loaded ({error}); see: pamer-lab doctor") from error
        self._model = cast(Any, model)
        self.dimensions = int(settings.dimensions or self._model.get_embedding_dimension())
        self.name = f"{label}-{self.dimensions}"
        special = len(self._model.tokenizer("")["input_ids"])
        self._window = int(self._model.max_seq_length) - special

    def embed(self, texts: Sequence[str]) -> Matrix:
        pieces: list[str] = []
        weights: list[int] = []
        owners: list[int] = []
        for owner, text in enumerate(texts):
            for piece, tokens in self.pieces(text):
                pieces.append(piece)
                weights.append(tokens)
                owners.append(owner)
        if not pieces:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        found = np.asarray(
            self._model.encode(
                pieces, batch_size=PIECES_PER_PASS, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
            ),
            dtype=np.float32,
        )
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        np.add.at(rows, owners, found * np.asarray(weights, dtype=np.float32)[:, None])
        return normalised(rows)

    def pieces(self, text: str) -> list[tuple[str, int]]:
        """(piece, tokens) of a text; one piece if it fits the window."""
        spans = self._model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
        if len(spans) <= self._window:
            return [(text, max(1, len(spans)))]
        pieces: list[tuple[str, int]] = []
        start = 0
        while start < len(spans):
            end = min(start + self._window, len(spans))
            if end < len(spans):
                end = _word_edge(spans, start + self._window * 3 // 4, end)
            stop = spans[end][0] if end < len(spans) else len(text)
            pieces.append((text[spans[start][0] : stop], end - start))
            start = end
        return pieces


def _word_edge(spans: list[tuple[int, int]], lowest: int, highest: int) -> int:
    """The last token in (lowest, highest] that does not touch the one before it; `highest` if there is none."""
    for index in range(highest, lowest, -1):
        if spans[index][0] > spans[index - 1][1]:
            return index
    return highest
