"""What is installed: device, models of each profile, and the command that gets what is missing.

Answers in well under a second: nothing is loaded, and torch is imported only where a GPU might be. Never raises: what
cannot be determined is a failed check with its reason.
"""

import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pamer_lab.models import devices, embedded
from pamer_lab.models.embedder import HASHING_DIMENSIONS
from pamer_lab.models.frozen import CHUNKS, chosen_model, find_folder, is_here, remedy
from pamer_lab.models.profiles import EMBEDDED, PROFILES, Profile

GB = 1e9
PACKAGES = ("torch", "transformers", "sentence-transformers", "lancedb", "streamlit", "openai")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
    """The command or step that fixes it; empty if nothing needs fixing."""
    required: bool = True
    """Whether the chosen profile cannot work without it."""

    def row(self) -> dict[str, Any]:
        return asdict(self)


def guarded(name: str, look: Callable[[], Check], fix: str = "") -> Check:
    """A check's answer; whatever it raises becomes a failed check."""
    try:
        return look()
    except Exception as error:
        return Check(name, False, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", fix)


def device_facts() -> dict[str, Any]:
    """The device `auto` would choose, and its memory in bytes."""
    import psutil

    ram = psutil.virtual_memory()
    facts: dict[str, Any] = {
        "name": "cpu",
        "cores": psutil.cpu_count(logical=True),
        "processor": platform.processor() or platform.machine(),
        "memory_total": ram.total,
        "memory_available": ram.available,
        "gpus": [],
    }
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        facts["name"] = "mps"
    if shutil.which("nvidia-smi"):
        facts["gpus"] = _gpus()
        facts["name"] = "cuda" if facts["gpus"] else facts["name"]
    return facts


def _gpus() -> list[dict[str, Any]]:
    import torch

    if not torch.cuda.is_available():
        return []
    found = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        found.append({"name": torch.cuda.get_device_name(number), "memory_total": total, "memory_available": free})
    return found


def package_check() -> Check:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    detail = ", ".join(found) + (f"; missing: {', '.join(missing)}" if missing else "")
    return Check("packages", not missing, detail, "make setup" if missing else "")


def browser_check() -> Check:
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    detail = found or "no Chromium on the path; only the browser tests need it"
    return Check("chromium", bool(found), detail, "" if found else "apt-get install chromium", required=False)


def profile_facts(profile: Profile) -> dict[str, Any]:
    """A profile's parts, each found or missing, with the command that gets it."""
    parts = [
        guarded("frozen model", partial(_model, "frozen model", chosen_model(profile.frozen_model), embedded.SMOLLM2)),
        guarded("embedding", partial(_embedding, profile)),
        Check("chat", True, _chat(profile), required=False),
        Check("memory", True, profile.memory_uri or "LanceDB in the workspace folder", required=False),
    ]
    return {
        "name": profile.name,
        "ok": all(part.ok for part in parts),
        "probe_limit": profile.probe_limit,
        "parts": [p.row() for p in parts],
    }


def all_profiles(chosen: Profile) -> list[dict[str, Any]]:
    """The built-in profiles, and the chosen one if it is another."""
    known = {**PROFILES, chosen.name: chosen}
    return [profile_facts(profile) for profile in known.values()]


def _embedding(profile: Profile) -> Check:
    settings = profile.embedding
    if settings.kind == "hashing":
        return Check("embedding", True, f"word hashes, {settings.dimensions or HASHING_DIMENSIONS} dimensions")
    if settings.kind == "openai":
        return Check("embedding", True, f"{settings.model} at {settings.base_url} (not contacted)")
    return _model("embedding", settings.model, embedded.MINILM)


def _model(part: str, model: str, file: embedded.EmbeddedFile) -> Check:
    if model == EMBEDDED:
        path = embedded.locate(file)
        if file is embedded.SMOLLM2 and not embedded.is_prepared():
            return Check(part, False, f"{file.name} is installed but not prepared", "pamer-lab prepare")
        return Check(part, True, f"{file.name} ({path.stat().st_size / 1e6:.0f} MB, embedded)")
    if is_here(model):
        return Check(part, True, f"{model} is here")
    return Check(part, False, f"{model} is not on this machine", remedy(model))


def _chat(profile: Profile) -> str:
    match profile.chat.kind:
        case "none":
            return "none: deterministic extractive parts"
        case "local":
            return "the frozen model itself"
        case "openai":
            return f"{profile.chat.model} at {profile.chat.base_url} (not contacted)"


def memory_facts(profile: Profile, device: dict[str, Any]) -> dict[str, Any]:
    """What the profile's frozen model needs on a GPU, and which cards have enough."""
    model = chosen_model(profile.frozen_model)
    here = is_here(model)
    shape = devices.geometry_of(find_folder(model)) if here else devices.QWEN35_9B
    chunk = profile.frozen_model.chunk or CHUNKS["cuda"]
    tokens = profile.probe_limit or 8192
    found = devices.estimate(shape, tokens, chunk)
    cards = devices.fitting_cards(found.total)
    own = [gpu["name"] for gpu in device["gpus"] if gpu["memory_total"] >= found.total]
    return {
        "model": model,
        "kind": "estimated",
        "geometry": "its config.json" if here else "the published Qwen3.5-9B geometry",
        "dtype": "bfloat16",
        "input_tokens": tokens,
        "chunk": chunk,
        "parameters": shape.parameters,
        "weights_gb": round(found.weights / GB, 2),
        "cache_gb": round(found.cache / GB, 2),
        "working_gb": round(found.working / GB, 2),
        "total_gb": round(found.total / GB, 2),
        "cards": cards,
        "here": own,
    }
