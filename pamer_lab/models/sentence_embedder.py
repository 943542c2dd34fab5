"""Embeddings by a local sentence-transformers model; the embedded MiniLM by default.

A text longer than the model's window is cut into pieces at word edges, each piece is embedded, and the pieces' vectors are
averaged by their length in tokens. Nothing of a text is dropped. Remote code is never run, and the embedded weights are
checked against their SHA-256 before use.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from pamer_lab.errors import ModelError
from pamer_lab.models import embedded
from pamer_lab.models.devices import resolve_device
from pamer_lab.models.embedder import Matrix, normalised
from pamer_lab.models.profiles import EMBEDDED, EmbeddingSettings

BATCH = 16
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
            self._model.encode(pieces, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True),
            dtype=np.float32,
        )
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        np.add.at(rows, owners, found * np.asarray(weights, dtype=np.float32)[:, None])
        return normalised(rows)

    def pieces(self, text: str) -> list[tuple[str, int]]:
        """(piece, tokens) of a text; one piece where it fits the window."""
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
    """The last token in (lowest, highest] that does not touch the one before it; `highest` where there is none."""
    for index in range(highest, lowest, -1):
        if spans[index][0] > spans[index - 1][1]:
            return index
    return highest
