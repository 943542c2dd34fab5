"""Labels by hindsight: what recorded later actions used of the history, by the rules of `evidence.py`; no model is asked.

Recall at t: the action at t uses evidence whose every occurrence is in blocks older than the recent window. Compression at t: those blocks
have at least the minimum size, and no action of the next H turns uses evidence that only they hold. docs/hindsight.md says what is not
labelled and what the rule cannot see.
Invariant: every label has the rule's origin; a positive recall names at least one step, and all its steps are older blocks.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from pamer_lab.blocks import split
from pamer_lab.errors import InputError
from pamer_lab.runs.evidence import Use, Uses, uses
from pamer_lab.runs.timeline import Timeline
from pamer_lab.trajectory.labels import HINDSIGHT, by_hindsight
from pamer_lab.trajectory.values import Label, Trace

_PLAIN_WORD = re.compile(r"[^\W\d_]+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CHANGED = re.compile(r":(?!horizon=0)(horizon|retained|minimum_tokens)=([1-9][0-9]{0,8}|0)(?![0-9])")
BACKGROUND_BLOCKS = 4
"""Minimum number of blocks before a use for an identifier that most of them contain to count as background."""


@dataclass(frozen=True)
class Rule:
    """What the rule counts."""

    horizon: int = 5
    """H: number of turns, the decision's own included, in which nothing of the older history may be used."""
    retained: int = 2
    """Newest complete blocks that count as recent."""
    minimum_tokens: int = 1024
    """Minimum tokens of older blocks for compression to be considered, as in the controller."""

    def __post_init__(self) -> None:
        if self.horizon < 1 or self.retained < 0 or self.minimum_tokens < 0:
            raise InputError("the horizon must be at least 1 turn, and the numbers of blocks and tokens must not be negative")

    @classmethod
    def of(cls, label: Label) -> "Rule":
        """The rule that a label's origin names; numbers that it does not name have their defaults."""
        return cls(**{name: int(value) for name, value in _CHANGED.findall(label.origin)})

    @property
    def origin(self) -> str:
        """The origin of its labels: labels made with other numbers answer another question, and never count as the same."""
        usual = asdict(type(self)())
        return HINDSIGHT + "".join(f":{name}={value}" for name, value in asdict(self).items() if value != usual[name])

    def facts(self) -> dict[str, Any]:
        """What the command and pages show about the rule."""
        return {"name": HINDSIGHT} | asdict(self)


def counted_uses(timeline: Timeline) -> Uses:
    """The uses that the rule counts: without common words, years, and identifiers that most blocks contain."""
    found = uses(timeline)
    counted = Uses(use for use in found if not _is_common(use))
    counted.stopped = found.stopped
    return counted


def _is_common(use: Use) -> bool:
    """A plain word in quotes, a year, or an identifier that more than half of the blocks before its use hold, such as a working folder."""
    if use.kind == "quoted" and _PLAIN_WORD.fullmatch(use.value):
        return True
    if use.kind == "number" and _YEAR.fullmatch(use.value):
        return True
    return use.t >= BACKGROUND_BLOCKS and 2 * len(use.blocks) > use.t


def hindsight_labels(timeline: Timeline, rule: Rule | None = None) -> tuple[Label, ...]:
    """Labels of both targets at every decision point at which the rule can say something."""
    rule = rule or Rule()
    found = counted_uses(timeline)
    by_turn: dict[int, list[Use]] = {}
    for use in found:
        by_turn.setdefault(use.t, []).append(use)
    sizes = timeline.block_tokens
    searched = timeline.turns if found.stopped is None else found.stopped
    labels: list[Label] = []
    for t in range(1, searched):
        old = frozenset(split(timeline.pieces.before(t), rule.retained).old)
        if not old:
            continue
        if sum(sizes[number] for number in old) >= rule.minimum_tokens and t + rule.horizon <= searched:
            coming = (use for later in range(t, t + rule.horizon) for use in by_turn.get(later, ()))
            labels.append(Label(t, "compression", not any(old.issuperset(use.blocks) for use in coming), rule.origin))
        needed = [use for use in by_turn.get(t, ()) if old.issuperset(use.blocks)]
        labels.append(Label(t, "recall", bool(needed), rule.origin, covering(needed)))
    return tuple(labels)


def covering(needed: Sequence[Use]) -> tuple[int, ...]:
    """A small set of blocks that together contain all these identifiers: the one with most first, the newest on a tie."""
    left, chosen = list(needed), set[int]()
    while left:
        best = max(
            {number for use in left for number in use.blocks}, key=lambda number: (sum(number in use.blocks for use in left), number)
        )
        chosen.add(best)
        left = [use for use in left if best not in use.blocks]
    return tuple(sorted(chosen))


def labelled(trace: Trace, labels: Sequence[Label]) -> Trace:
    """The trace with these labels instead of its earlier hindsight labels; labels of other origins stay."""
    kept = [label for label in trace.labels if not by_hindsight(label)]
    return msgspec.structs.replace(trace, labels=(*kept, *labels))
