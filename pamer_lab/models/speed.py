"""A first guess of how fast a frozen model reads, before anything was measured on this machine; nothing is loaded."""

from pamer_lab.models.frozen import Shape, shape_of
from pamer_lab.models.profiles import Profile

PREFILL = 400
"""Tokens a second that SmolLM2-135M reads in float32 on two cores; measured once, a first guess elsewhere."""
MEASURED = Shape(layers=30, width=576)
"""The model of that measurement."""
LOADING = 25.0
"""Seconds that loading the models takes at most, on two cores."""


def guessed_speed(profile: Profile) -> float:
    """Tokens a second on two cores: the weights of a block grow with the square of its width, and time with the weights."""
    shape = shape_of(profile.frozen_model.model) or MEASURED
    return PREFILL * (MEASURED.layers * MEASURED.width**2) / (shape.layers * shape.width**2)
