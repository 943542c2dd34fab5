"""How fast this machine reads hidden states and embeds texts: measured during real work, kept in the workspace, used to estimate the next.

A pace is blocks times tokens per second, so that one number serves every layer: a pass to block 12 of 30 goes no deeper. It is kept per
model and device in `pace.json`, as it would be if no other program ran; a new measurement counts as much as all earlier ones together.
How much other programs slow the machine down is measured whenever a pace is asked for. Embedding is kept in characters per second.
"""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pamer_lab.errors import LabError
from pamer_lab.models.frozen import FrozenModel, chosen_model, model_name
from pamer_lab.models.profiles import Profile
from pamer_lab.models.speed import LOADING, Watch, busy, guessed_blocks, matrix_speed, profile_shape, stretch
from pamer_lab.opening import parse_json, read_text
from pamer_lab.storage.files import write_whole

FILE = "pace.json"
ENOUGH = 256
"""Minimum number of tokens for a meaningful measurement."""
WARM, TIMED = 32, 512
"""Tokens of the warm-up and the timed pass through a loaded model."""
EMBEDDING, EMBEDDING_PRODUCT = 10_500.0, 1.6e11
"""First guess: characters per second that all-MiniLM-L6-v2 embeds on a machine whose matrix product runs at this many operations/s."""
ENOUGH_CHARACTERS = 10_000
"""Minimum number of embedded characters for a meaningful measurement."""

DEVICES = ("cuda", "mps", "cpu")
"""In the order in which `auto` tries them."""

Basis = Literal["measured", "guessed"]
"""`measured`: with this model on this machine. `guessed`: from the speed of the machine's matrix product and the model's size."""


@dataclass(frozen=True)
class Pace:
    """How fast a model reads, and how long loading takes."""

    blocks: float
    """Blocks times tokens per second at the current load."""
    loading: float
    """Seconds to load the models at the current load."""
    basis: Basis
    busy: float = 1.0
    """Factor by which other programs slow reading down now."""
    stretch: float = 1.0
    """The same for loading, which uses one core."""

    def seconds(self, tokens: int, depth: int) -> float:
        """Seconds to read tokens up to block `depth`, counted from 1."""
        return tokens * depth / self.blocks

    def speed(self, depth: int) -> float:
        """Tokens per second up to block `depth`."""
        return self.blocks / max(depth, 1)


def pace_of(profile: Profile, folder: Path, device: str = "auto") -> Pace:
    """The pace of a profile's model, measured earlier or guessed, before anything is loaded."""
    found, name = _read(folder), model_name(chosen_model(profile.frozen_model))
    devices = DEVICES if device == "auto" else (device.partition(":")[0],)
    kind, known = next(((kind, found[key]) for kind in devices if (key := _key(name, kind)) in found), ("cpu", {}))
    basis: Basis = "measured" if "blocks" in known else "guessed"
    own = float(known["blocks"]) if "blocks" in known else guessed_blocks(profile)
    shared, alone = busy() if kind == "cpu" else 1.0, stretch()
    return Pace(own / shared, float(known.get("loading", LOADING)) * alone, basis, shared, alone)


def depth_of(profile: Profile, layer: str = "final") -> int:
    """Blocks that a pass to a layer goes through."""
    name = layer.replace(":", "_")
    return int(name.removeprefix("block_")) if name.startswith("block_") else profile_shape(profile).layers


def remember(folder: Path, model: FrozenModel, *, blocks: float = 0.0, loading: float = 0.0) -> None:
    """Keep a new measurement, given as if no other program ran; nothing is kept if the workspace cannot be written."""
    _remember(folder, _key(model.name, model.device.partition(":")[0]), blocks=blocks, loading=loading)


def embedding_pace(profile: Profile, folder: Path) -> tuple[float, Basis]:
    """Characters per second that the profile's embedder embeds at the current load, and whether that was measured."""
    known = _read(folder).get(_embedding_key(profile), {}).get("characters")
    own = float(known) if known else EMBEDDING * matrix_speed() / EMBEDDING_PRODUCT
    return own / _others(profile), "measured" if known else "guessed"


def remember_embedding(profile: Profile, folder: Path, characters: int, seconds: float) -> None:
    """Keep how fast embedding was just now."""
    if characters >= ENOUGH_CHARACTERS and seconds > 0:
        _remember(folder, _embedding_key(profile), characters=characters / seconds * _others(profile))


def _embedding_key(profile: Profile) -> str:
    return f"{profile.embedding.model or profile.embedding.kind} embedding"


def _others(profile: Profile) -> float:
    """Factor by which other programs slow embedding down here; 1 for a server, whose load is unknown."""
    return 1.0 if profile.embedding.kind == "openai" else busy()


def _remember(folder: Path, key: str, **values: float) -> None:
    found = _read(folder)
    own = found.setdefault(key, {})
    for name, value in values.items():
        if value > 0:
            own[name] = (own.get(name, value) + value) / 2
    try:
        write_whole(folder / FILE, json.dumps(found, indent=1).encode())
    except LabError:
        return


def loaded_pace(model: FrozenModel, folder: Path | None, depth: int) -> float:
    """Blocks times tokens per second of a loaded model at the current load: as kept, else measured now and kept."""
    known = _read(folder).get(_key(model.name, model.device.partition(":")[0]), {}) if folder else {}
    shared = busy() if model.device == "cpu" else 1.0
    if "blocks" in known:
        return float(known["blocks"]) / shared
    found = measure(model, depth)
    if folder:
        remember(folder, model, blocks=found)
    return found / shared


def measure(model: FrozenModel, depth: int) -> float:
    """Blocks times tokens per second of a short pass through a loaded model up to block `depth`, as if no other program ran."""
    _pass(model, WARM, depth)
    watch = watch_of(model)
    _pass(model, TIMED, depth)
    return TIMED * depth / watch()


def watch_of(model: FrozenModel) -> Callable[[], float]:
    """A stopwatch for a model's work: on a CPU, the seconds it would have taken if no other program ran; on a GPU, the elapsed seconds."""
    began = time.perf_counter()
    return Watch().alone if model.device == "cpu" else lambda: time.perf_counter() - began


def _pass(model: FrozenModel, tokens: int, depth: int) -> None:
    import torch

    from pamer_lab.features.pooling import Enough, Pooler

    ids = torch.as_tensor(np.arange(tokens, dtype=np.int64) % 1000, device=model.device)[None]
    layer = depth - 1 if depth < model.layers else model.layers
    with Pooler(model, [layer]) as pooler, torch.inference_mode():
        pooler.expect([tokens - 1], np.ones((1, tokens), dtype=bool))
        with contextlib.suppress(Enough):
            model.decoder(ids, use_cache=False)
        pooler.collect()  # waits for a device that computes in the background


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        found = parse_json(read_text(folder / FILE))
    except (LabError, FileNotFoundError, ValueError):
        return {}
    rows = found.items() if isinstance(found, dict) else ()
    return {name: own for name, own in rows if isinstance(own, dict) and all(isinstance(value, int | float) for value in own.values())}


def _key(model: str, device: str) -> str:
    return f"{model} {device}"
