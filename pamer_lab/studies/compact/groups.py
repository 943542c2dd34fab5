"""Groups of conditions: heading, look and panel, stated once. A condition with a group of its own states it in its own file."""

from dataclasses import dataclass
from typing import Literal

from pamer_lab.looks import MarkLook

Panel = Literal["both", "recent", "recovered"]
"""Side of the trade-off figure: recent context, recovered history, or both."""


@dataclass(frozen=True)
class Group:
    """Conditions that stand together in tables and share a mark in charts."""

    name: str
    """What the command line calls it."""
    heading: str
    look: MarkLook
    panel: Panel = "recovered"
    more_than_text: bool = False
    """Whether probes get, or learn from, more than the text that is read."""


FULL = Group("full", "Full Context", MarkLook("black", "star"), "both")
RECENT = Group("recent", "Recent context", MarkLook("blue", "circle"), "recent")
STATE = Group("state", "Scalar state and decision distillation", MarkLook("sky", "square"), "recent", more_than_text=True)
RAW = Group("raw", "Recovered raw evidence", MarkLook("vermilion", "diamond"))
EMBEDDING = Group("embedding", "Recovered by embedding", MarkLook("green", "triangle-up"))
CONTROLS = Group("controls", "Retrieval controls", MarkLook("grey", "x"))
HIDDEN = Group("hidden", "Hidden and recurrent memory", MarkLook("purple", "cross"), more_than_text=True)
BUDGET = Group("budget", "Evidence budget", MarkLook("brown", "hexagon"))
