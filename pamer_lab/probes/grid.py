"""Grid training: every probe of a study (feature sets x targets x seeds) as one batched problem.

A study's probes read the same rows; they differ in feature set (layer, pooling, hint), target and seed. Each step shows one window of rows
to all of them at once: the heads of a feature set are rows of one matrix, so a step is one batched matrix product forward and one backward,
whatever the number of probes. A seed's split becomes a mask, its standardisation is folded into the weights, and its class weight and
teacher are coefficients of one formula, `training.soft_target`.

Invariant: a probe trained in a grid equals the probe trained alone (same windows, same initial weights, no shared state), and a seed's
validation and test rows never enter its gradient.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.circle import Circle, FileCircle, HeldCircle, States, require_finite
from pamer_lab.probes.readout import Capacity, Floats, HeadStack
from pamer_lab.probes.tile import Plan, train_tile
from pamer_lab.probes.training import Bools, GridData, Training, window_size

CPU_TILE = 16_000_000
"""Bytes of window and weights that are worked on together: about half of a last-level cache."""
GPU_TILE = 2_000_000_000


@dataclass(frozen=True)
class GridResult:
    """Fitted probes and their logits for every row."""

    logits: Floats
    """[F, T, S, n], also for rows that do not count."""
    epochs: npt.NDArray[np.int64]
    """[F, T, S]: the epoch (from 1) whose weights were kept."""
    losses: Floats
    """[F, T, S]: validation label loss at that epoch."""
    parameters: tuple[tuple[HeadStack, ...], ...]
    """[F][T]: one stack of S heads each."""


def train_grid(data: GridData, capacity: Capacity, training: Training | None = None, device: str = "cpu") -> GridResult:
    """Train all probes; targets that count at the same rows are trained together."""
    training = training or Training()
    if isinstance(data.features, np.ndarray):
        for number, own in enumerate(data.features):
            require_finite(number, np.arange(len(own)), own)
    sets, rows, _ = data.features.shape
    targets, seeds = data.counts.shape[0], len(data.splits)
    logits = np.zeros((sets, targets, seeds, rows), dtype=np.float32)
    epochs = np.zeros((sets, targets, seeds), dtype=np.int64)
    losses = np.zeros((sets, targets, seeds), dtype=np.float32)
    stacks: dict[tuple[int, int], HeadStack] = {}
    for together in _same_rows(data.counts):
        plan = Plan.of(data, together, training)
        for tile in _tiles(data.features, len(plan.split_of), len(plan.kept), capacity, training, device):
            fitted = train_tile(_circle(data.features, tile, plan, training, device), plan, capacity, training, device)
            for local, number in enumerate(range(tile.start, tile.stop)):
                for column, target in enumerate(together):
                    these = slice(column * seeds, (column + 1) * seeds)
                    logits[number, target] = fitted.logits[local, these]
                    epochs[number, target] = fitted.epochs[local, these]
                    losses[number, target] = fitted.losses[local, these]
                    stacks[number, target] = fitted.stack(local, these)
    ordered = tuple(tuple(stacks[number, target] for target in range(targets)) for number in range(sets))
    return GridResult(logits, epochs, losses, ordered)


def _circle(features: Floats | States, tile: slice, plan: Plan, training: Training, device: str) -> Circle:
    if isinstance(features, np.ndarray):
        return HeldCircle(features[tile], plan.kept, window_size(len(plan.kept), training), device)
    return FileCircle(features, tile.start, plan.kept, device)


def _same_rows(counts: Bools) -> list[list[int]]:
    """Targets grouped by the rows at which they count."""
    groups: dict[bytes, list[int]] = {}
    for target, mask in enumerate(counts):
        groups.setdefault(mask.tobytes(), []).append(target)
    return list(groups.values())


def _tiles(features: Floats | States, columns: int, rows: int, capacity: Capacity, training: Training, device: str) -> Iterator[slice]:
    sets, _, width = features.shape
    if not isinstance(features, np.ndarray):
        yield from (slice(number, number + 1) for number in range(sets))
        return
    weights = columns * width * (training.width if capacity == "mlp" else 1)
    cost = 4 * (window_size(rows, training) * width + 4 * weights)
    step = max(1, (CPU_TILE if device == "cpu" else GPU_TILE) // cost)
    for start in range(0, sets, step):
        yield slice(start, min(sets, start + step))
