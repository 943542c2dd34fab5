"""How fast this machine reads hidden states: measured by every extraction, stored in the workspace, and used to estimate the next.

A pace is blocks times tokens a second, so that one figure serves every layer: a pass to block 12 of 30 goes no deeper. It is kept per
model and device in `pace.json`, with the speed of the matrix product at that time; a new measurement counts as much as all before it. The
same product, measured again, says how much faster or slower the machine is now: other programs may have begun or ended.
The one source of time estimates for replays and studies.
"""

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pamer_lab.errors import LabError
from pamer_lab.models.frozen import FrozenModel, chosen_model, model_name
from pamer_lab.models.profiles import Profile
from pamer_lab.models.speed import LOADING, guessed_blocks, matrix_speed, profile_shape
from pamer_lab.opening import parse_json, read_text
from pamer_lab.storage.files import write_whole

FILE = "pace.json"
ENOUGH = 256
"""Tokens from which a measurement means something."""
WARM, TIMED = 32, 512
"""Tokens of the two passes that measure a loaded model."""

DEVICES = ("cuda", "mps", "cpu")
"""In the order in which `auto` takes them."""

Basis = Literal["measured", "guessed"]
"""`measured`: with this model on this machine. `guessed`: by the speed of the machine's matrix product and the model's size."""


@dataclass(frozen=True)
class Pace:
    """What reading takes."""

    blocks: float
    """Blocks times tokens a second."""
    loading: float
    """Seconds to load the models."""
    basis: Basis

    def seconds(self, tokens: int, depth: int) -> float:
        """Time to read tokens up to a block, counted from 1."""
        return tokens * depth / self.blocks

    def speed(self, depth: int) -> float:
        """Tokens a second up to a block."""
        return self.blocks / max(depth, 1)


def pace_of(profile: Profile, folder: Path, device: str = "auto") -> Pace:
    """What is known before anything is loaded."""
    found, name = _read(folder), model_name(chosen_model(profile.frozen_model))
    devices = DEVICES if device == "auto" else (device.partition(":")[0],)
    known = next((found[key] for kind in devices if (key := _key(name, kind)) in found), {})
    if "blocks" in known:
        return Pace(_now(known), float(known.get("loading", LOADING)), "measured")
    return Pace(guessed_blocks(profile), float(known.get("loading", LOADING)), "guessed")


def depth_of(profile: Profile, layer: str = "final") -> int:
    """Blocks that a pass to a layer goes through."""
    name = layer.replace(":", "_")
    return int(name.removeprefix("block_")) if name.startswith("block_") else profile_shape(profile).layers


def remember(folder: Path, model: FrozenModel, *, blocks: float = 0.0, loading: float = 0.0) -> None:
    """Keep what was just measured; a workspace that cannot be written keeps nothing."""
    found = _read(folder)
    own = found.setdefault(_key(model.name, model.device.partition(":")[0]), {})
    for name, value in (("blocks", blocks), ("matrix", matrix_speed() if blocks else 0.0), ("loading", loading)):
        if value > 0:
            own[name] = (own.get(name, value) + value) / 2
    try:
        write_whole(folder / FILE, json.dumps(found, indent=1).encode())
    except LabError:
        return


def loaded_pace(model: FrozenModel, folder: Path | None, depth: int) -> float:
    """Blocks times tokens a second of a loaded model: as remembered, else measured now and remembered."""
    known = _read(folder).get(_key(model.name, model.device.partition(":")[0]), {}) if folder else {}
    if "blocks" in known:
        return _now(known)
    found = measure(model, depth)
    if folder:
        remember(folder, model, blocks=found)
    return found


def _now(known: Mapping[str, float]) -> float:
    """The pace that was measured, at the present speed of the machine."""
    return float(known["blocks"]) * (matrix_speed() / known["matrix"] if known.get("matrix") else 1.0)


def measure(model: FrozenModel, depth: int) -> float:
    """Blocks times tokens a second of a short pass through a loaded model, to a block."""
    _pass(model, WARM, depth)
    began = time.perf_counter()
    _pass(model, TIMED, depth)
    return TIMED * depth / (time.perf_counter() - began)


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
