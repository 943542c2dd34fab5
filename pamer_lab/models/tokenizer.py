"""Token counters: the profile's own tokenizer, usually without loading transformers.

A counter's name says which tokenizer counted. Only the embedded profile may do without one (an estimate, which says so);
a profile with another model is never counted with a tokenizer that is not its own.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pamer_lab.blocks.tokens import PIECE_CHARACTERS, CountKind, EstimatedCounter, MessageTokens, TokenCounter, pieces
from pamer_lab.errors import InputError, ModelError
from pamer_lab.models.embedded import SMOLLM2, check, is_prepared, prepared_folder
from pamer_lab.models.frozen import chosen_model, model_folder, model_name, remedy
from pamer_lab.models.profiles import EMBEDDED, Profile

BATCH_CHARACTERS = 500_000
"""Texts are tokenised in batches of about this many characters, to bound memory."""

LINE_WITNESS = (
    "<|im_start|>user",
    "word",
    "word.",
    "12",
    "x = {1: 'a'}",
    "<entry>",
    "</entry>",
    "漢字",
    "émigré",
    "path/to",
    "- item",
    "…",
    "Done.",
)
"""Ends and beginnings of lines that tokenizers treat differently."""


def in_batches(texts: Sequence[str], count_batch: Callable[[list[str]], list[int]]) -> list[int]:
    """Tokens of each text; many texts are counted in batches and a long one in pieces, so that memory stays bounded."""
    if sum(map(len, texts)) <= PIECE_CHARACTERS:
        return count_batch(list(texts))
    counts = [0] * len(texts)
    batch: list[tuple[int, str]] = []
    size = 0

    def flush() -> None:
        for (number, _), count in zip(batch, count_batch([piece for _, piece in batch]), strict=True):
            counts[number] += count
        batch.clear()

    for number, text in enumerate(texts):
        for piece in pieces([text]):
            batch.append((number, piece))
            size += len(piece)
            if size > BATCH_CHARACTERS:
                flush()
                size = 0
    flush()
    return counts


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

    @cached_property
    def adds_up_by_line(self) -> bool:
        """Whether the lines of a text, counted one by one, add up to the text: tested on one with many kinds of line ends."""
        lines = [f"{line}\n" for line in LINE_WITNESS]
        return sum(self.count(lines)) == self.count(["".join(lines)])[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        return in_batches(texts, self._count_batch)

    def _count_batch(self, batch: list[str]) -> list[int]:
        encoded = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        return [len(item.ids) for item in encoded]


class LoadedCounter:
    """Counts with a tokenizer that transformers has loaded."""

    kind: CountKind = "measured"

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        self.name = name

    def count(self, texts: Sequence[str]) -> list[int]:
        return in_batches(texts, self._count_batch)

    def _count_batch(self, batch: list[str]) -> list[int]:
        found = self._tokenizer(batch, add_special_tokens=False, verbose=False)["input_ids"] if batch else []
        return [len(ids) for ids in found]


_ESTIMATE = EstimatedCounter()


@lru_cache(maxsize=1)
def _embedded(folder: Path) -> TokenCounter:
    check(folder, "tokenizer.json")
    return TokenizerCounter(folder, SMOLLM2.name)


def embedded_counter() -> TokenCounter:
    """SmolLM2's tokenizer if it is prepared; otherwise the estimate."""
    return _embedded(prepared_folder()) if is_prepared() else _ESTIMATE


def profile_counter(profile: Profile) -> TokenCounter:
    """The tokenizer of the profile's frozen model."""
    model = chosen_model(profile.frozen_model)
    if model == EMBEDDED:
        return embedded_counter()
    folder = model_folder(model)
    if folder is None:
        raise InputError(f"the tokenizer of {model} is needed to count tokens and is not on this machine; get it: {remedy(model)}")
    return _folder_counter(folder, model_name(model))


def profile_tokens(profile: Profile) -> MessageTokens:
    """Message counts by the profile's tokenizer, remembered for the life of the process."""
    counter = profile_counter(profile)
    return _TOKENS.setdefault(id(counter), MessageTokens(counter))


_TOKENS: dict[int, MessageTokens] = {}
"""By the counter's id; its `MessageTokens` keeps the counter alive, so no other gets the same id."""


@lru_cache(maxsize=8)
def _folder_counter(folder: Path, name: str) -> TokenCounter:
    """`tokenizer.json` if there is one, else whatever transformers finds in the folder."""
    if (folder / "tokenizer.json").is_file():
        return TokenizerCounter(folder, name)
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # whatever transformers raises for a folder without a usable tokenizer
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise InputError(
            f"contains no tokenizer that can be loaded ({reason}); put the model's tokenizer.json there", path=str(folder)
        ) from error
    return LoadedCounter(tokenizer, name)
