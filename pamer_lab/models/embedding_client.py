"""Embeddings from any server with OpenAI's `/v1/embeddings`.

Invariant: a batch is answered completely, in order, with finite vectors of the agreed length, or it is an error.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pamer_lab.errors import InputError, ModelError
from pamer_lab.models.attempts import BadAnswer, with_attempts
from pamer_lab.models.embedder import Matrix, normalised
from pamer_lab.models.profiles import EmbeddingSettings
from pamer_lab.redaction import api_key

BATCH = 64
"""Texts per request."""


class EmbeddingClient:
    """An embedding server behind the `Embedder` Protocol."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        import openai

        if not settings.base_url or not settings.model or not settings.dimensions:
            raise InputError("an embedding server needs base_url, model and dimensions in its profile")
        self._settings = settings
        self.dimensions = settings.dimensions
        self.name = f"{settings.model}-{settings.dimensions}"
        self._client = openai.OpenAI(
            base_url=settings.base_url, api_key=api_key(settings.api_key_variable), timeout=settings.timeout_seconds, max_retries=0
        )

    def embed(self, texts: Sequence[str]) -> Matrix:
        parts = [self._batch(list(texts[start : start + BATCH])) for start in range(0, len(texts), BATCH)]
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
                raise BadAnswer(f"the answer numbers its vectors wrongly ({index!r})")
            if not isinstance(vector, list):
                raise BadAnswer("the answer holds something that is not a vector")
            if len(vector) != self.dimensions:
                # Another attempt gives the same length: the profile or the server must change.
                raise ModelError(f"{self._settings.model} answers {len(vector)} dimensions, and the profile asks for {self.dimensions}")
            seen.add(index)
            try:
                rows[index] = vector
            except (TypeError, ValueError) as error:
                raise BadAnswer("the answer holds a vector that is not numbers") from error
        if not np.isfinite(rows).all():
            raise BadAnswer("the answer holds numbers that are not finite")
        return rows
