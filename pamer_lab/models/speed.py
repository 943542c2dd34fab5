"""How fast a frozen model should read on this machine, guessed from a short measurement of the matrix product; nothing is loaded.

A pass through a block is almost all matrix products, so a model reads at a nearly constant share of their speed. A measurement of the model
itself (`features/pace.py`) is better and is used if there is one.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pamer_lab.engines.local import cores
from pamer_lab.models.frozen import chosen_model, model_folder
from pamer_lab.models.profiles import Profile
from pamer_lab.opening import parse_json, read_file

EFFICIENCY = 0.6
"""Share of the matrix product's speed at which a pass runs, attention and norms included; `bench replay` measures it."""
LOADING = 6.0
"""Rough number of seconds to load the models, imports included."""
ROWS, WIDTH, ROUNDS = 512, 1024, 5
"""Size of the measured product, and how often each core computes it."""
NOTICED = 1.25
"""Ratio of wall time to processor time from which work counts as slowed down by other programs."""
COMPUTING, RECENT = 0.06, 5.0
"""Processor seconds of a measurement, longer than a time slice on a shared core, and seconds for which it holds: the load changes."""


@dataclass(frozen=True)
class Shape:
    """The size of a model, from its configuration."""

    layers: int
    """Number of blocks."""
    width: int
    inner: int = 0
    """Width of a block's feed-forward part; zero if the configuration does not say: four times the width is assumed."""
    keys: int = 0
    """Width of all keys of a token; zero if the configuration does not say: the width is assumed."""

    @property
    def operations(self) -> float:
        """Operations for one token in one block: two for each weight."""
        attention = 2 * self.width * (self.width + (self.keys or self.width))
        return 2.0 * (attention + 3 * self.width * (self.inner or 4 * self.width))


MEASURED = Shape(layers=30, width=576, inner=1536, keys=192)
"""SmolLM2-135M, used for a model whose shape is unknown."""


def shape_of(model: str) -> Shape | None:
    """A model's shape, read from its configuration alone; None where the model is not on this machine or does not say."""
    folder = model_folder(model)
    if folder is None:
        return None
    try:
        config = parse_json(read_file(folder / "config.json"))
        own = config.get("text_config") or config
        layers, width, inner = int(own["num_hidden_layers"]), int(own["hidden_size"]), int(own.get("intermediate_size") or 0)
        heads = int(own.get("num_attention_heads") or 1)
        keys = int(own.get("num_key_value_heads") or heads) * int(own.get("head_dim") or width // heads)
        return Shape(layers, width, inner, keys)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError):
        return None


def profile_shape(profile: Profile) -> Shape:
    return shape_of(chosen_model(profile.frozen_model)) or MEASURED


def guessed_blocks(profile: Profile) -> float:
    """Blocks times tokens per second at which the profile's model should read on this machine when nothing else runs."""
    return EFFICIENCY * matrix_speed() / profile_shape(profile).operations


class Machine(NamedTuple):
    """What was just measured."""

    speed: float
    """Operations per second of a float32 matrix product on all cores, as if no other program ran."""
    busy: float
    """Factor by which other programs slow down work on all cores now; at least 1."""


def matrix_speed() -> float:
    """Operations per second of a matrix product on all cores when nothing else runs; measuring takes a few hundredths of a second."""
    return _machine(int(time.monotonic() // RECENT)).speed


def busy() -> float:
    """Factor by which other programs slow down work on all cores now; at least 1."""
    return _machine(int(time.monotonic() // RECENT)).busy


@lru_cache(maxsize=1)
def _machine(moment: int) -> Machine:
    """Times each core's product in processor time, which other programs hardly change, unlike wall time."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(cores()) as pool:
        taken = list(pool.map(lambda _: _product(), range(cores())))
    work = 2.0 * ROWS * WIDTH * WIDTH * ROUNDS
    alone = sum(cpu for _, cpu in taken) / len(taken)
    return Machine(sum(work / cpu for _, cpu in taken), slower(max(wall for wall, _ in taken), alone))


def _product() -> tuple[float, float]:
    """Seconds and processor seconds of one core's products."""
    import numpy as np

    left, right = np.ones((ROWS, WIDTH), dtype=np.float32), np.ones((WIDTH, WIDTH), dtype=np.float32)
    _ = left @ right
    wall, cpu = time.perf_counter(), time.thread_time()
    for _ in range(ROUNDS):
        _ = left @ right
    return time.perf_counter() - wall, max(time.thread_time() - cpu, 1e-9)


def slower(wall: float, cpu: float) -> float:
    """Ratio of wall time to processor time; below `NOTICED` it counts as 1, since no other program is to blame."""
    found = wall / cpu if cpu > 0 else 1.0
    return found if found >= NOTICED else 1.0


class Watch:
    """Times this thread's work as if no other program ran; its helpers on other cores are assumed to be slowed down equally."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.thread_time()

    def alone(self) -> float:
        """Seconds since the start, without the time that other programs took."""
        wall = time.perf_counter() - self._wall
        return wall / slower(wall, time.thread_time() - self._cpu)


def stretch() -> float:
    """Factor by which other programs slow down a single thread now; at least 1."""
    return _stretch(int(time.monotonic() // RECENT))


@lru_cache(maxsize=1)
def _stretch(moment: int) -> float:
    wall, cpu = time.perf_counter(), time.thread_time()
    while (computed := time.thread_time() - cpu) < COMPUTING:
        sum(range(1000))
    return slower(time.perf_counter() - wall, computed)
