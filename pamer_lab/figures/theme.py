"""Colours with one meaning each, in light and dark (Okabe-Ito), and how a policy and an event look in every chart.

A dash or marker always repeats the meaning of a colour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pamer_lab.decisions import Action
from pamer_lab.looks import Colour, LineLook
from pamer_lab.policies.bounds import BOUNDS
from pamer_lab.policies.registry import POLICIES

Meaning = Literal[
    "base",
    "pamer",
    "pamer+",
    "sliding",
    "periodic",
    "ablation",
    "compression",
    "recall",
    "fallback",
    "good",
    "bad",
    "active",
    "summarised",
    "recalled",
    "restored",
    "absent",
    "chosen",
    "faint",
]
"""`base` to `ablation`: policies. `compression`, `recall`, `fallback`: events. `good`, `bad`: changes. `active` to
`absent`: block states. `chosen`: what the reader opened. `faint`: everything else in the background."""

LIGHT: dict[Meaning, str] = {
    "base": "#7A7A7A",
    "pamer": "#0072B2",
    "pamer+": "#D55E00",
    "sliding": "#56B4E9",
    "periodic": "#B8860B",
    "ablation": "#CC79A7",
    "compression": "#000000",
    "recall": "#009E73",
    "fallback": "#E69F00",
    "good": "#009E73",
    "bad": "#D55E00",
    "active": "#3C4650",
    "summarised": "#9AA3AB",
    "recalled": "#66C2A4",
    "restored": "#009E73",
    "absent": "#E4E4DE",
    "chosen": "#0072B2",
    "faint": "#B9BEC3",
}
DARK: dict[Meaning, str] = {
    "base": "#A6A6A6",
    "pamer": "#5CB3E6",
    "pamer+": "#FF8A4C",
    "sliding": "#8CD0F5",
    "periodic": "#DDB14A",
    "ablation": "#E3A3C6",
    "compression": "#FFFFFF",
    "recall": "#3CC79E",
    "fallback": "#F2B84B",
    "good": "#3CC79E",
    "bad": "#FF8A4C",
    "active": "#D3D9DE",
    "summarised": "#7C858D",
    "recalled": "#2F8F72",
    "restored": "#3CC79E",
    "absent": "#31363C",
    "chosen": "#5CB3E6",
    "faint": "#565D65",
}
NAMED: dict[Colour, Meaning] = {
    "grey": "base",
    "blue": "pamer",
    "vermilion": "pamer+",
    "sky": "sliding",
    "brown": "periodic",
    "purple": "ablation",
    "green": "recall",
    "black": "compression",
}
"""Colours as policies and conditions name them."""


def layout(**more: Any) -> dict[str, Any]:
    """What all our figures share; fonts, grid and background come from Streamlit's theme."""
    base: dict[str, Any] = {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "hoverlabel": {"align": "left"},
        "dragmode": False,
        "bargap": 0.15,
    }
    return base | more


CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "zoom2d", "pan2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
}
"""Plotly's own tool bar: keep the camera and the reset."""


SIGNS: dict[Action, str] = {"pass": "·", "compress": "▼", "recall": "▲", "fallback": "✕"}
EVENTS: tuple[Action, ...] = ("compress", "recall", "fallback")
SYMBOLS: dict[Action, str] = {"pass": "circle", "compress": "triangle-down", "recall": "triangle-up", "fallback": "x"}
COLOURS: dict[Action, Meaning] = {"pass": "faint", "compress": "compression", "recall": "recall", "fallback": "fallback"}
DROP_SIGN = "▽"
DROP_SYMBOL = "triangle-down-open"
"""A drop is not an action of a policy but content that its request lost, so its mark is open, in the colour of bad changes."""
ACTION_WORDS: dict[Action, str] = {
    "pass": "nothing stored or recalled",
    "compress": "compressed: older blocks were replaced by a summary",
    "recall": "recalled: memory was added to the context",
    "fallback": "fell back: something failed, so the request was sent unchanged",
}
STATE_LETTERS = {"A": "A", "S": "S", "R": "R", "X": "X", ".": "·"}
STATE_MEANINGS: list[Meaning] = ["active", "summarised", "recalled", "restored", "absent"]
"""In the order of `decisions.LETTERS`."""
FURTHER_DASHES = ("dot", "longdashdot", "dash", "dashdot", "longdash", "solid")
FURTHER_SYMBOLS = (
    *("circle", "square", "diamond", "cross", "star", "hexagon", "pentagon", "bowtie", "hourglass", "triangle-left", "triangle-right"),
    *("diamond-tall", "star-square", "star-diamond", "hexagram"),
)
"""Dashes and symbols that distinguish policies of one colour when several are shown; the first keeps its own look."""
UNKNOWN = LineLook("purple", "longdash")


@dataclass(frozen=True)
class Look:
    """One policy's line."""

    meaning: Meaning
    dash: str
    symbol: str
    width: float = 2
    marked: bool = False
    """Whether a line of many turns also shows a few symbols."""


def look(policy: str, beside: Sequence[str] = ()) -> Look:
    """A policy's look. Policies of the same colour that are shown together differ in dash and symbol."""
    own = line_look(policy)
    same = [other for other in dict.fromkeys(beside) if line_look(other).colour == own.colour]
    number = same.index(policy) if policy in same else 0
    taken: list[str] = []
    for other in same[: number + 1] or [policy]:
        wanted = [line_look(other).dash, *FURTHER_DASHES]
        taken.append(next((dash for dash in wanted if dash not in taken), wanted[0]))
    symbol = FURTHER_SYMBOLS[number % len(FURTHER_SYMBOLS)] + ("" if own.filled else "-open")
    return Look(NAMED[own.colour], taken[-1], symbol, own.width, marked=own.filled or number > 0)


def line_look(policy: str) -> LineLook:
    """The look that a policy's class declares, whatever the parameters. A policy that no longer exists looks like an ablation."""
    kind = (POLICIES | BOUNDS).get(policy.partition(":")[0])
    return kind.look if kind else UNKNOWN
