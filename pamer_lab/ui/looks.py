"""How a policy and an event look in every chart: colour, dash, marker and words, one meaning each."""

from dataclasses import dataclass

from pamer_lab.policies.values import Action
from pamer_lab.ui.theme import DASHES, Meaning

SIGNS: dict[Action, str] = {"pass": "·", "compress": "▼", "recall": "▲", "fallback": "✕"}
SYMBOLS: dict[Action, str] = {"pass": "circle", "compress": "triangle-down", "recall": "triangle-up", "fallback": "x"}
COLOURS: dict[Action, Meaning] = {"pass": "faint", "compress": "compression", "recall": "recall", "fallback": "fallback"}
ACTION_WORDS: dict[Action, str] = {
    "pass": "nothing stored or recalled",
    "compress": "compressed: older blocks left the context for a summary",
    "recall": "recalled: memory was put back into the context",
    "fallback": "fell back: something failed, and the request went out as it came",
}
STATE_LETTERS = {"A": "A", "S": "S", "R": "R", "X": "X", ".": "·"}
STATE_MEANINGS: list[Meaning] = ["active", "summarised", "recalled", "restored", "absent"]
"""In the order of `ledger.LETTERS`."""


@dataclass(frozen=True)
class Look:
    """One policy's line."""

    meaning: Meaning
    dash: str
    symbol: str
    width: float = 2


def look(policy: str) -> Look:
    """A policy's look by its name; parameters do not change it."""
    name = policy.partition(":")[0]
    meaning: Meaning = "ablation"
    if name in ("base", "pamer", "pamer+"):
        meaning = name  # type: ignore[assignment]
    elif name == "sliding-window":
        meaning = "sliding"
    elif name == "periodic-summary":
        meaning = "periodic"
    return Look(meaning, DASHES[meaning], "circle" if name == "pamer+" else "circle-open", 2.5 if name.startswith("pamer") else 2)


def event_word(action: Action) -> str:
    """One word for a table."""
    return {"pass": "", "compress": "compression", "recall": "recall", "fallback": "fallback"}[action]
