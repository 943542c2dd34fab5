"""Selective Raw: cosine of token frequencies between the last block and each older one.

Tokens are lower-cased words and numbers of what a block says (text, call names, arguments, results), without chat markup, so
that this selector needs no tokenizer; scripts that put no space between words count by pairs of neighbouring characters. The paper
names neither its tokens nor its weights; raw frequencies are used here.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pamer_lab.studies.compact.groups import RAW, Group
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.selectors import ranked
from pamer_lab.studies.compact.values import Evidence, Need, Resources
from pamer_lab.trajectory.values import Message

UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Chinese characters
)
_WORD = re.compile(rf"[^\W{UNSPACED}]+")
_RUN = re.compile(f"[{UNSPACED}]+")


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
    group: Group = RAW
    needs: frozenset[Need] = frozenset()

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        if not old:
            return []
        last = self._of(point, point.last, resources)
        return ranked(old, [last.cosine(self._of(point, number, resources)) for number in old])

    def _of(self, point: DecisionPoint, number: int, resources: Resources) -> Frequencies:
        key = ("words", point.lineage, number)
        if key not in resources.memo:
            resources.memo[key] = frequencies(point.block(number))
        found: Frequencies = resources.memo[key]
        return found


def frequencies(messages: Sequence[Message]) -> Frequencies:
    """Token frequencies of a block."""
    counts: Counter[str] = Counter()
    for message in messages:
        counts.update(words(message.content))
        for call in message.tool_calls:
            counts.update(words(f"{call.name} {call.arguments}"))
    return Frequencies(counts, math.sqrt(sum(number * number for number in counts.values())))


def words(text: str) -> list[str]:
    """Lower-cased words as spaces and punctuation part them; of scripts that do without spaces, pairs of characters."""
    text = text.lower()
    found = _WORD.findall(text)
    if not text.isascii():
        for run in _RUN.findall(text):
            found += ["".join(pair) for pair in pairwise(run)] or [run]
    return found
