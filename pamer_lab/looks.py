"""How a policy or a group of conditions looks in charts: a named colour and a second cue.

A class declares its look once; `figures` knows what the names mean in light and dark themes.
"""

from dataclasses import dataclass
from typing import Literal

Colour = Literal["grey", "blue", "vermilion", "sky", "brown", "purple", "green", "black"]
"""Okabe-Ito hues, safe for colour-blind readers."""
Dash = Literal["solid", "dot", "dash", "dashdot", "longdash", "longdashdot"]
Mark = Literal["circle", "square", "diamond", "cross", "x", "star", "hexagon", "pentagon", "triangle-up"]


@dataclass(frozen=True)
class LineLook:
    """A policy's line."""

    colour: Colour
    dash: Dash
    """The second cue, for readers who do not see the colour."""
    filled: bool = False
    """Filled marks, shown along the line; else open ones, shown only where lines are few."""
    width: float = 2
    """Pixels."""


@dataclass(frozen=True)
class MarkLook:
    """The marks of a group of conditions."""

    colour: Colour
    mark: Mark
