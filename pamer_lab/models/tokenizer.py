"""Token counters from a model folder's `tokenizer.json`, without loading transformers.

What always holds: a counter's name says which tokenizer counted; where none is prepared, the estimate says so itself.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pamer_lab.blocks.tokens import CountKind, EstimatedCounter, TokenCounter
from pamer_lab.errors import ModelError
from pamer_lab.models.embedded import SMOLLM2, is_prepared, prepared_folder
from pamer_lab.models.seal import check

BATCH_CHARACTERS = 4_000_000
"""Texts are tokenised in batches of about this many characters, to bound memory."""


class TokenizerCounter:
    """Counts with a Hugging Face `tokenizer.json`; special tokens in a text count as what they are."""

    kind: CountKind = "measured"

    def __init__(self, folder: Path, name: str) -> None:
        from tokenizers import Tokenizer

        path = folder / "tokenizer.json"
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception as error:
            raise ModelError(f"the tokenizer {path} cannot be read ({error})") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = name

    def count(self, texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        batch: list[str] = []
        size = 0
        for text in texts:
            batch.append(text)
            size += len(text)
            if size > BATCH_CHARACTERS:
                counts.extend(self._count_batch(batch))
                batch, size = [], 0
        return counts + self._count_batch(batch)

    def _count_batch(self, batch: list[str]) -> list[int]:
        encoded = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        return [len(item.ids) for item in encoded]


class LoadedCounter:
    """Counts with the tokenizer of a model that is loaded anyway."""

    kind: CountKind = "measured"

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        self.name = name

    def count(self, texts: Sequence[str]) -> list[int]:
        found = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        return [len(ids) for ids in found]


@lru_cache(maxsize=1)
def _embedded(folder: Path) -> TokenCounter:
    check(folder, "tokenizer.json")
    return TokenizerCounter(folder, SMOLLM2.name)


def embedded_counter() -> TokenCounter:
    """SmolLM2's tokenizer where it is prepared; otherwise the estimate."""
    return _embedded(prepared_folder()) if is_prepared() else EstimatedCounter()
