"""A frozen causal language model: loaded once, never trained, with access to its blocks and final norm.

Any folder or hub id that `transformers` knows; safetensors only, and never code from the model's repository. Nothing is
downloaded: for a model that is not on this machine, the error names the command that gets it. Knows nothing of messages,
contexts or features. Invariant: `fingerprint` changes when the weights or the configuration do.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pamer_lab.errors import InputError, ModelError
from pamer_lab.models import embedded
from pamer_lab.models.devices import resolve_device, resolve_dtype
from pamer_lab.models.profiles import EMBEDDED, FrozenSettings, Profile
from pamer_lab.opening import parse_json, read_file, refuse_special_files
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

SAMPLES = 16
SAMPLE_BYTES = 65_536
"""A weight file is identified by its header, its size and this many samples of this many bytes."""
CHUNKS = {"cpu": 1024, "cuda": 4096, "mps": 1024}
"""Tokens per forward pass where the profile names none."""


@dataclass
class FrozenModel:
    """The model and what others need to know about it."""

    name: str
    fingerprint: str
    """Hash of configuration and weights."""
    layers: int
    """Number of blocks, not counting the state after the final norm."""
    width: int
    window: int
    """Positions the model was made for."""
    limit: int
    """Maximum tokens of a probe input."""
    prefix_kept: int
    """Tokens kept from the beginning when an input is over the limit."""
    output_reserve: int
    """Tokens added to the context hint for the coming output."""
    device: str
    dtype: str
    chunk: int
    """Tokens per forward pass; halved when memory runs out."""
    tokenizer: Any = field(repr=False)
    model: Any = field(repr=False)
    decoder: Any = field(repr=False)
    """The model without its language head."""
    blocks: Any = field(repr=False)
    norm: Any = field(repr=False)

    def new_cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self.decoder.config)

    def recurrent(self) -> bool:
        """Whether some layer keeps a state that cannot be cut back to an earlier token."""
        from transformers.cache_utils import DynamicLayer

        return not all(type(layer) is DynamicLayer for layer in self.new_cache().layers)


def load_frozen(source: Profile | FrozenSettings | str | Path, device: str = "auto") -> FrozenModel:
    """Load what a profile names, or a folder or hub id as it is."""
    refuse_in_reviewer_mode("Loading a model")
    profile = source if isinstance(source, Profile) else Profile(name="given", frozen_model=_settings(source))
    settings = profile.frozen_model
    chosen = chosen_model(settings)
    folder = find_folder(chosen)
    where = resolve_device(device)
    dtype = resolve_dtype(settings.dtype, where)
    model, tokenizer = _load(folder, chosen, dtype, where)
    decoder = model.get_decoder()
    blocks, norm = _parts(decoder, chosen)
    config = decoder.config
    window = int(config.max_position_embeddings)
    return FrozenModel(
        name=model_name(chosen),
        fingerprint=fingerprint(folder),
        layers=len(blocks),
        width=int(config.hidden_size),
        window=window,
        limit=min(profile.probe_limit or window, window),
        prefix_kept=profile.prefix_kept,
        output_reserve=profile.output_reserve,
        device=where,
        dtype=str(dtype).removeprefix("torch."),
        chunk=settings.chunk or CHUNKS[where.partition(":")[0]],
        tokenizer=tokenizer,
        model=model,
        decoder=decoder,
        blocks=blocks,
        norm=norm,
    )


def _settings(source: FrozenSettings | str | Path) -> FrozenSettings:
    return source if isinstance(source, FrozenSettings) else FrozenSettings(model=str(source))


def chosen_model(settings: FrozenSettings) -> str:
    """The model that is used: the fallback if the first choice is not on this machine."""
    return settings.fallback if settings.fallback and not is_here(settings.model) else settings.model


def model_name(model: str) -> str:
    """A model's name as people know it, without its folder or organisation."""
    return embedded.SMOLLM2.name if model == EMBEDDED else Path(model).name


def model_folder(model: str) -> Path | None:
    """The folder with a model's files where they are on this machine; nothing is fetched and nothing heavy is imported."""
    if model == EMBEDDED:
        return embedded.prepared_folder() if embedded.is_prepared() else None
    path = Path(model).expanduser()
    if (path / "config.json").is_file():
        refuse_special_files(path)
        return path
    if model.count("/") != 1 or path.is_absolute():
        return None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def is_here(model: str) -> bool:
    """Whether a model's files are on this machine."""
    return model_folder(model) is not None


def remedy(model: str) -> str:
    """The command that gets a missing model."""
    return "pamer-lab prepare" if model == EMBEDDED else f"hf download {model}"


def find_folder(model: str) -> Path:
    """The folder with a model's files; the embedded one is prepared if it has not been yet."""
    if model == EMBEDDED:
        return embedded.prepare()
    folder = model_folder(model)
    if folder is not None:
        return folder
    path = Path(model).expanduser()
    if path.is_absolute() or path.is_dir() or model.count("/") != 1:
        raise InputError(f"{model!r} is neither a model folder (it has no config.json) nor a hub id")
    raise InputError(f"the model {model} is not on this machine; get it: {remedy(model)}")


def _load(folder: Path, name: str, dtype: Any, device: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, trust_remote_code=False, attn_implementation="sdpa", local_files_only=True
        )
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        model.to(device)
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"the model {name!r} cannot be loaded on {device} ({first[:300]}); see: pamer-lab doctor") from error
    model.eval()
    model.requires_grad_(False)
    return model, tokenizer


def _parts(decoder: Any, name: str) -> tuple[Any, Any]:
    """The list of blocks and the final norm, by the names that nearly all decoders use."""
    blocks = next((getattr(decoder, key) for key in ("layers", "h", "blocks") if hasattr(decoder, key)), None)
    norm = next((getattr(decoder, key) for key in ("norm", "ln_f", "final_layernorm", "norm_f") if hasattr(decoder, key)), None)
    if blocks is None or norm is None:
        raise ModelError(f"the blocks and the final norm of {name!r} ({type(decoder).__name__}) cannot be found")
    return blocks, norm


def fingerprint(folder: Path) -> str:
    """Hash of the configuration and of the weight files' headers, sizes and samples."""
    digest = hashlib.sha256()
    config = parse_json(read_file(folder / "config.json"))
    config.pop("transformers_version", None)
    digest.update(json.dumps(config, sort_keys=True).encode())
    for file in sorted(folder.glob("*.safetensors")):
        size = file.stat().st_size
        digest.update(f"{file.name}:{size}".encode())
        with file.open("rb") as stream:
            header = int.from_bytes(stream.read(8), "little")
            digest.update(stream.read(min(header, 10_000_000)))
            for number in range(SAMPLES):
                stream.seek(max(0, size - SAMPLE_BYTES) * number // (SAMPLES - 1))
                digest.update(stream.read(SAMPLE_BYTES))
    return digest.hexdigest()
