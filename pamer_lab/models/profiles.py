"""Profiles: which frozen model, embedder, chat server and memory a run uses.

`embedded` and `paper` are written here; a TOML file starts from one of them (`base = "paper"`) and changes what it names.
Knows names and limits only: nothing is loaded, found or downloaded here. An unknown key is refused, never dropped.
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from pamer_lab.config import Settings
from pamer_lab.errors import InputError, UnknownNameError

EMBEDDED = "embedded"
"""As a model's name: the weights that install with the package."""

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
"""`auto`: float32 on a CPU, bfloat16 on CUDA where the card has it (else float16), float16 on MPS."""

EmbeddingKind = Literal["sentence-transformers", "openai", "hashing"]
"""`sentence-transformers`: a local model. `openai`: any server with `/v1/embeddings`. `hashing`: word hashes, without a model,
for tests and for machines that have none."""

ChatKind = Literal["none", "local", "openai"]
"""`none`: deterministic extractive parts, no LLM. `local`: the frozen model's own weights. `openai`: any server with
`/v1/chat/completions`."""


class FrozenSettings(Settings):
    """The model whose hidden states are read."""

    model: str = EMBEDDED
    """`embedded`, a local folder, or a hub id."""
    dtype: Dtype = "auto"
    chunk: int = Field(default=0, ge=0)
    """Tokens per forward pass; 0: by device."""


class EmbeddingSettings(Settings):
    """The model that turns summaries and queries into vectors."""

    kind: EmbeddingKind = "sentence-transformers"
    model: str = EMBEDDED
    """`embedded`, a local folder, a hub id, or the server's name for it."""
    dimensions: int = Field(default=0, ge=0)
    """Length of a vector; a longer one is truncated to it. 0: the model's own."""
    base_url: str = ""
    """Of the server, ending in `/v1`; only for `openai`."""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the server's key; unset means none is sent."""
    timeout_seconds: float = Field(default=30.0, gt=0)
    """Of one attempt."""
    attempts: int = Field(default=8, ge=1)


class ChatSettings(Settings):
    """The model that writes summaries, routes, recalls and annotates."""

    kind: ChatKind = "none"
    model: str = ""
    """The server's name for it; for `local` the frozen model is used."""
    base_url: str = ""
    """Of the server, ending in `/v1`; only for `openai`."""
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the server's key; unset means none is sent."""
    temperature: float = Field(default=0.0, ge=0)
    thinking: bool = False
    """Whether the server's chat template may open a thinking part."""
    timeout_seconds: float = Field(default=100.0, gt=0)
    """Of one attempt."""
    attempts: int = Field(default=8, ge=1)


class Profile(Settings):
    """Everything a run needs to know about models and memory."""

    name: str
    frozen_model: FrozenSettings = FrozenSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    chat: ChatSettings = ChatSettings()
    memory_uri: str = ""
    """Where LanceDB keeps memories; empty: in the workspace folder."""
    probe_limit: int = Field(default=0, ge=0)
    """Most tokens of a probe input; 0: the frozen model's window."""
    prefix_kept: int = Field(default=2048, ge=0)
    """Tokens kept from the beginning when a probe input is over the limit."""
    output_reserve: int = Field(default=16_384, ge=0)
    """Tokens added to the context hint for the coming output."""


PROFILES: dict[str, Profile] = {
    "embedded": Profile(name="embedded"),
    "paper": Profile(
        name="paper",
        frozen_model=FrozenSettings(model="Qwen/Qwen3.5-9B"),
        embedding=EmbeddingSettings(model="Qwen/Qwen3-Embedding-8B", dimensions=1024),
        chat=ChatSettings(kind="openai", model="Qwen/Qwen3.5-9B", base_url="http://127.0.0.1:8000/v1"),
        probe_limit=35_000,
    ),
}


def load_profile(name_or_file: str | Path) -> Profile:
    """A profile by its name, or from a TOML file."""
    text = str(name_or_file)
    if text in PROFILES:
        return PROFILES[text]
    path = Path(text)
    if path.suffix != ".toml":
        raise UnknownNameError("profile", text, [*PROFILES, "FILE.toml"])
    try:
        with path.open("rb") as stream:
            given = tomllib.load(stream)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"this profile cannot be read ({error})", path=text) from error
    base = given.pop("base", "embedded")
    if base not in PROFILES:
        raise UnknownNameError("base profile", str(base), list(PROFILES)).at(path=text)
    settings = _merged(PROFILES[base].model_dump(), {"name": path.stem} | given)
    try:
        return Profile.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{first['msg']}; correct or remove it", path=text, where=where) from error


def _merged(base: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """`base` with the values of `given`, table by table."""
    result = dict(base)
    for key, value in given.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
