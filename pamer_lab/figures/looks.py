"""How a policy and an event look in every chart: one colour, dash, marker and word for each."""

from collections.abc import Sequence
from dataclasses import dataclass

from pamer_lab.decisions import Action
from pamer_lab.figures.theme import DASHES, Meaning

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
"""Dashes that distinguish policies of one kind when several are shown; the first keeps the look of its kind."""


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
    """A policy's look by its name; where others of its kind are shown too, their dashes and symbols differ, never their colour."""
    name, meaning = policy.partition(":")[0], meaning_of(policy)
    kind = [other for other in dict.fromkeys(beside) if meaning_of(other) == meaning]
    number = kind.index(policy) if policy in kind else 0
    dashes = [DASHES[meaning], *(dash for dash in FURTHER_DASHES if dash != DASHES[meaning])]
    symbol = FURTHER_SYMBOLS[number % len(FURTHER_SYMBOLS)] + ("" if name == "pamer+" else "-open")
    width = 2.5 if name.startswith("pamer") else 2
    return Look(meaning, dashes[number % len(dashes)], symbol, width, marked=name == "pamer+" or number > 0)


def meaning_of(policy: str) -> Meaning:
    """The kind of policy that a colour means; parameters do not change it."""
    name = policy.partition(":")[0]
    if name in ("base", "pamer", "pamer+"):
        return name  # type: ignore[return-value]
    return {"sliding-window": "sliding", "periodic-summary": "periodic"}.get(name, "ablation")  # type: ignore[return-value]
