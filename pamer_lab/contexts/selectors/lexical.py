"""Selective Raw: cosine of token frequencies between the last block and each older one.

Tokens are lower-cased words and numbers of what a block says (text, call names, arguments, results), without chat markup, so
that this selector needs no tokenizer. The paper names neither its tokens nor its weights; raw frequencies are used here.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pamer_lab.contexts.points import DecisionPoint
from pamer_lab.contexts.selectors import ranked
from pamer_lab.contexts.values import Evidence, Group, Need, Resources
from pamer_lab.trajectory.values import Message

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Frequencies:
    """How often each token stands in a block."""

    counts: Counter[str]
    norm: float

    def cosine(self, other: "Frequencies") -> float:
        """Zero where either block says nothing."""
        small, large = sorted((self.counts, other.counts), key=len)
        product = sum(number * large[word] for word, number in small.items())
        return product / (self.norm * other.norm) if product else 0.0


@dataclass(frozen=True)
class Lexical:
    """Ranks by what the last block says."""

    name: str = "raw"
    label: str = "Selective Raw"
    group: Group = "raw"
    needs: frozenset[Need] = frozenset()

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        if not old:
            return []
        last = self._of(point, point.last, resources)
        return ranked(old, [last.cosine(self._of(point, number, resources)) for number in old])

    def _of(self, point: DecisionPoint, number: int, resources: Resources) -> Frequencies:
        key = ("words", point.trace_id, number)
        if key not in resources.memo:
            resources.memo[key] = frequencies(point.block(number))
        found: Frequencies = resources.memo[key]
        return found


def frequencies(messages: Sequence[Message]) -> Frequencies:
    """Token frequencies of a block."""
    counts: Counter[str] = Counter()
    for message in messages:
        counts.update(_WORD.findall(message.content.lower()))
        for call in message.tool_calls:
            counts.update(_WORD.findall(f"{call.name} {call.arguments}".lower()))
    return Frequencies(counts, math.sqrt(sum(number * number for number in counts.values())))
