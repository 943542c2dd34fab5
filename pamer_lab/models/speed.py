"""How fast a frozen model should read on this machine, by a short measurement of its matrix product; nothing is loaded.

A pass through a block is almost all matrix products, so a model reads at a nearly constant share of their speed. What was measured with
the model itself (`features/pace.py`) is better and is taken where it is known.
"""

import time
from dataclasses import dataclass
from functools import lru_cache

from pamer_lab.models.frozen import chosen_model, model_folder
from pamer_lab.models.profiles import Profile
from pamer_lab.opening import parse_json, read_file

EFFICIENCY = 0.6
"""Share of the matrix product's speed at which a pass runs, attention and norms included; `bench replay` measures it."""
LOADING = 25.0
"""Seconds that loading the models takes at most, on two cores."""
ROWS, WIDTH, ROUNDS, LONGEST = 512, 1024, 10, 1.5
"""Size of the measured product, how often it is made, and the seconds after which no other begins."""
COMPUTING, RECENT = 0.06, 5.0
"""Seconds that a measurement computes, longer than a turn on a shared core, and for which it holds: the load of a machine changes."""


@dataclass(frozen=True)
class Shape:
    """The size of a model, by its configuration."""

    layers: int
    """Number of blocks."""
    width: int
    inner: int = 0
    """Width of a block's feed-forward part; zero where the configuration does not say, then it counts as four times the width."""
    keys: int = 0
    """Width of all keys of a token; zero where the configuration does not say, then it counts as the width."""

    @property
    def operations(self) -> float:
        """Operations for one token in one block: two for each weight."""
        attention = 2 * self.width * (self.width + (self.keys or self.width))
        return 2.0 * (attention + 3 * self.width * (self.inner or 4 * self.width))


MEASURED = Shape(layers=30, width=576, inner=1536, keys=192)
"""SmolLM2-135M, for a model whose shape is not known."""


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
    """Blocks times tokens a second that the profile's model should read at on this machine."""
    return EFFICIENCY * matrix_speed() / profile_shape(profile).operations


def matrix_speed() -> float:
    """Operations a second of a matrix product in float32, measured now in about a tenth of a second: other programs slow it down."""
    return _matrix_speed(int(time.monotonic() // RECENT))


@lru_cache(maxsize=1)
def _matrix_speed(moment: int) -> float:
    import numpy as np

    left, right = np.ones((ROWS, WIDTH), dtype=np.float32), np.ones((WIDTH, WIDTH), dtype=np.float32)
    _ = left @ right  # the first one also starts the threads
    began, rounds = time.perf_counter(), 0
    while rounds < ROUNDS and time.perf_counter() - began < LONGEST:
        _ = left @ right
        rounds += 1
    return 2.0 * ROWS * WIDTH * WIDTH * rounds / (time.perf_counter() - began)


def stretch() -> float:
    """How much longer a single thread takes now than it computes, because other programs run; at least 1."""
    return _stretch(int(time.monotonic() // RECENT))


@lru_cache(maxsize=1)
def _stretch(moment: int) -> float:
    wall, cpu = time.perf_counter(), time.thread_time()
    while (computed := time.thread_time() - cpu) < COMPUTING:
        sum(range(1000))
    return max(1.0, (time.perf_counter() - wall) / computed)
