"""Profiles: which frozen model, embedder, chat server and memory a run uses.

`embedded` and `paper` are defined here; a TOML file starts from one of them (`base = "paper"`) and changes what it names;
`hf:ID` is the embedded profile with another frozen model. Knows names and limits only: nothing is loaded, found or
downloaded here. An unknown key is refused, never dropped.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError

from pamer_lab.config import Settings
from pamer_lab.errors import InputError, UnknownNameError
from pamer_lab.opening import parse_toml, read_file, read_text
from pamer_lab.storage.shared_files import publish, refresh

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


TrainingHint = Literal["none", "faithful"]
"""`none`: the context as it is. `faithful`: the probe input ends with the size of the active request."""


def _address(text: str) -> str:
    """A server's address; a password in it would be stored with every error that names the server."""
    try:
        parts = urlsplit(text)
        plain = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not False and "@" not in parts.netloc
    except ValueError:
        plain = False
    if text and not (plain and text.isprintable() and not set(text) & set(" \"'<>\\")):
        raise ValueError("an address needs http:// or https://, a host and a path, without user name, password or spaces")
    return text


def _key_variable(text: str) -> str:
    if not KEY_VARIABLE.fullmatch(text):
        raise ValueError("a key variable must be HF_TOKEN or end in _API_KEY or _API_TOKEN, in capitals; copy the key into such a variable")
    return text


KEY_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,60}_API_(?:KEY|TOKEN)|HF_TOKEN")
"""Variables whose value a profile may send to its server: named like keys, so `redaction.own_keys` removes their values everywhere."""
Address = Annotated[str, AfterValidator(_address)]
KeyVariable = Annotated[str, AfterValidator(_key_variable)]


class FrozenSettings(Settings):
    """The model whose hidden states are read."""

    model: str = EMBEDDED
    """`embedded`, a local folder, or a hub id."""
    fallback: str = ""
    """Used if `model` is not on this machine; empty: no fallback."""
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
    base_url: Address = ""
    """Of the server, ending in `/v1`; only for `openai`."""
    api_key_variable: KeyVariable = "OPENAI_API_KEY"
    """Environment variable that holds the server's key; unset means none is sent."""
    timeout_seconds: float = Field(default=30.0, gt=0)
    """Of one attempt."""
    attempts: int = Field(default=8, ge=1)


class ChatSettings(Settings):
    """The model that writes summaries, routes, recalls and annotates."""

    kind: ChatKind = "none"
    model: str = ""
    """The server's name for it; for `local` the frozen model is used."""
    base_url: Address = ""
    """Of the server, ending in `/v1`; only for `openai`."""
    api_key_variable: KeyVariable = "OPENAI_API_KEY"
    """Environment variable that holds the server's key; unset means none is sent."""
    temperature: float = Field(default=0.0, ge=0)
    thinking: bool = False
    """Whether the server's chat template may open a thinking part."""
    timeout_seconds: float = Field(default=100.0, gt=0)
    """Of one attempt."""
    attempts: int = Field(default=8, ge=1)


class TrainingSettings(Settings):
    """Where `train` reads the states of students and heads if the command names nothing else."""

    layer: str = "preferred"
    """`preferred`: by validation. `teacher`: where the teacher reads. Or a layer, such as `final` or `block_17`."""
    hint: TrainingHint = "none"


class Profile(Settings):
    """Everything a run needs to know about models and memory."""

    name: str
    frozen_model: FrozenSettings = FrozenSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    chat: ChatSettings = ChatSettings()
    memory_uri: str = ""
    """Where LanceDB keeps memories; empty: in the workspace folder."""
    probe_limit: int = Field(default=0, ge=0)
    """Maximum tokens of a probe input; 0: the frozen model's window."""
    prefix_kept: int = Field(default=2048, ge=0)
    """Tokens kept from the beginning when a probe input is over the limit."""
    output_reserve: int = Field(default=16_384, ge=0)
    """Tokens added to the context hint for the coming output."""
    training: TrainingSettings = TrainingSettings()
    probe_system_prompt: str = ""
    """Goes before a trace's own system text in probe inputs; heads keep the one they were trained with."""
    heads: str = ""
    """Name or folder of the heads that vote; empty: the packaged ones for the model, or the only registered ones."""
    _from_file: bool = PrivateAttr(default=False)

    @property
    def from_file(self) -> bool:
        """Whether it was read from a file, which may be a stranger's; `models/trust.py` then asks for confirmation."""
        return self._from_file

    def identity(self) -> dict[str, Any]:
        """Everything that can change a replayed turn, as plain data."""
        return self.model_dump(exclude={"name", "memory_uri", "training", "probe_system_prompt", "heads"})


HUB = "hf:"
_HUB_ID = re.compile(r"(?<![\w.-])[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
PAPER_CHECKPOINT = "Qwen3.5-9B-OPD-iter2"
"""The paper's features come from the "OPD iter-2 Qwen3.5-9B checkpoint", which has no public hub id: a folder of this name in the
working directory (or another `frozen_model.model` in a TOML) is used if it exists, else the base Qwen/Qwen3.5-9B."""

PROFILES: dict[str, Profile] = {
    "embedded": Profile(name="embedded"),
    "paper": Profile(
        name="paper",
        frozen_model=FrozenSettings(model=PAPER_CHECKPOINT, fallback="Qwen/Qwen3.5-9B"),
        embedding=EmbeddingSettings(model="Qwen/Qwen3-Embedding-8B", dimensions=1024),
        chat=ChatSettings(kind="openai", model="Qwen/Qwen3.5-9B", base_url="http://127.0.0.1:8000/v1"),
        probe_limit=35_000,
        training=TrainingSettings(layer="final", hint="faithful"),
    ),
}


def load_profile(name_or_file: str | Path, workspace: Path | None = None) -> Profile:
    """A profile by its name, from a TOML file, or `hf:ID` for any causal language model that transformers loads.

    In a workspace, the name of a profile that a run there was made with is enough.
    """
    text = str(name_or_file)
    if text in PROFILES:
        return PROFILES[text]
    if text.startswith(HUB):
        return _hub_profile(text)
    if workspace is not None:
        refresh(workspace)
    if workspace is not None and (kept := _kept(text, workspace)).is_file():
        try:
            return _read_from_file(Profile.model_validate_json(read_file(kept)))
        except ValidationError as error:
            raise _fault(error, str(kept)) from error
    path = Path(text)
    if path.suffix != ".toml":
        known = known_profiles(workspace) if workspace is not None else list(PROFILES)
        raise UnknownNameError("profile", text, [*known, "hf:ID", "FILE.toml"])
    return _toml_profile(path)


def remember_profile(profile: Profile, workspace: Path) -> None:
    """Keep a profile that is not built in in the workspace, so that its runs can be opened by its name."""
    if profile.name in PROFILES:
        return
    path, body = _kept(profile.name, workspace), profile.model_dump_json(indent=1).encode()
    if path.is_file() and read_file(path) == body:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.draft")
    draft.write_bytes(body)
    draft.replace(path)
    publish(workspace, path)


def known_profiles(workspace: Path) -> list[str]:
    """Built-in profiles, and those that runs in the workspace were made with."""
    kept = sorted(unquote(path.stem) for path in (workspace / "profiles").glob("*.json"))
    return [*PROFILES, *(name for name in kept if name not in PROFILES)]


def _kept(name: str, workspace: Path) -> Path:
    return workspace / "profiles" / f"{quote(name, safe='')[:200]}.json"


def _toml_profile(path: Path) -> Profile:
    text = str(path)
    try:
        given = parse_toml(read_text(path))
    except (OSError, ValueError) as error:
        raise InputError(f"this profile cannot be read ({error})", path=text) from error
    base = given.pop("base", "embedded")
    if not isinstance(base, str) or base not in PROFILES:
        raise UnknownNameError("base profile", str(base)[:60], list(PROFILES)).at(path=text)
    model = given.get("frozen_model")
    if isinstance(model, dict) and "model" in model:
        model.setdefault("fallback", "")
    settings = _merged(PROFILES[base].model_dump(), {"name": path.stem} | given)
    if settings["name"] in list(PROFILES):  # any TOML value may be given as the name
        raise InputError(f"a custom profile cannot be called {settings['name']!r}; rename the file or set name", path=text, where="name")
    try:
        return _read_from_file(Profile.model_validate(settings))
    except ValidationError as error:
        raise _fault(error, text) from error


def _fault(error: ValidationError, path: str) -> InputError:
    """What is wrong with a profile, without repeating its values."""
    first = error.errors()[0]
    return InputError(f"{first['msg']}; correct or remove it", path=path, where=".".join(str(part) for part in first["loc"]))


def _read_from_file(profile: Profile) -> Profile:
    profile._from_file = True
    return profile


def _hub_profile(text: str) -> Profile:
    """The embedded profile with the frozen model that follows `hf:`: a hub id, or a folder."""
    model = text.removeprefix(HUB)
    if not _HUB_ID.fullmatch(model) and not (model and Path(model).expanduser().is_dir()):
        raise InputError(f"{text!r} is not a profile: hf: must be followed by a hub id such as Qwen/Qwen3-0.6B, or a model folder")
    return Profile(name=text, frozen_model=FrozenSettings(model=model))


def _merged(base: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """`base` with the values of `given`, table by table."""
    result = dict(base)
    for key, value in given.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
