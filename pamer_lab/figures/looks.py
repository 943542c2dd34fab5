"""How a policy and an event look in every chart: one colour, dash, marker and word for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from pamer_lab.decisions import Action
from pamer_lab.figures.theme import NAMED, Meaning
from pamer_lab.looks import LineLook
from pamer_lab.policies.registry import POLICIES

SIGNS: dict[Action, str] = {"pass": "·", "compress": "▼", "recall": "▲", "fallback": "✕"}
SYMBOLS: dict[Action, str] = {"pass": "circle", "compress": "triangle-down", "recall": "triangle-up", "fallback": "x"}
COLOURS: dict[Action, Meaning] = {"pass": "faint", "compress": "compression", "recall": "recall", "fallback": "fallback"}
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
FURTHER_SYMBOLS = ("circle", "square", "diamond", "cross", "star", "hexagon", "pentagon")
"""Dashes that distinguish policies of one colour when several are shown; the first keeps its own look."""
UNKNOWN = LineLook("purple", "longdash")


@dataclass(frozen=True)
class Look:
    """One policy's line."""

    meaning: Meaning
    dash: str
    symbol: str
    width: float = 2
    marked: bool = False
    """Whether a line of many turns shows its symbol too, here and there."""


def look(policy: str, beside: Sequence[str] = ()) -> Look:
    """A policy's look; where others of its colour are shown too, their dashes and symbols differ, never their colour."""
    own = line_look(policy)
    same = [other for other in dict.fromkeys(beside) if line_look(other).colour == own.colour]
    number = same.index(policy) if policy in same else 0
    dashes = [own.dash, *(dash for dash in FURTHER_DASHES if dash != own.dash)]
    symbol = FURTHER_SYMBOLS[number % len(FURTHER_SYMBOLS)] + ("" if own.filled else "-open")
    return Look(NAMED[own.colour], dashes[number % len(dashes)], symbol, own.width, marked=own.filled or number > 0)


def line_look(policy: str) -> LineLook:
    """What a policy's class states; parameters do not change it. A run of a policy that is gone looks like an ablation."""
    kind = POLICIES.get(policy.partition(":")[0])
    return kind.look if kind else UNKNOWN
