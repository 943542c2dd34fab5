"""A first guess of how fast a frozen model reads, before anything was measured on this machine; nothing is loaded."""

from dataclasses import dataclass

from pamer_lab.models.frozen import chosen_model, model_folder
from pamer_lab.models.profiles import Profile
from pamer_lab.opening import parse_json, read_file

PREFILL = 400
"""Tokens a second that SmolLM2-135M reads in float32 on two cores; measured once, a first guess elsewhere."""
LOADING = 25.0
"""Seconds that loading the models takes at most, on two cores."""


@dataclass(frozen=True)
class Shape:
    """The size of a model, by its configuration."""

    layers: int
    """Number of blocks."""
    width: int


MEASURED = Shape(layers=30, width=576)
"""The model that `PREFILL` was measured with."""


def shape_of(model: str) -> Shape | None:
    """A model's shape, read from its configuration alone; None where the model is not on this machine or does not say."""
    folder = model_folder(model)
    if folder is None:
        return None
    try:
        config = parse_json(read_file(folder / "config.json"))
        own = config.get("text_config") or config
        return Shape(int(own["num_hidden_layers"]), int(own["hidden_size"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def guessed_speed(profile: Profile) -> float:
    """Tokens a second on two cores: the weights of a block grow with the square of its width, and time with the weights."""
    shape = shape_of(chosen_model(profile.frozen_model)) or MEASURED
    return PREFILL * (MEASURED.layers * MEASURED.width**2) / (shape.layers * shape.width**2)
