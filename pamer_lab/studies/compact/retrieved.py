"""`P + E + R`: the prefix, the K older blocks that a selector ranks best, under an optional cap, and Recent2; and the selectors.

Evidence is placed between the prefix and Recent2 in its recorded order, whatever its rank, because that is the order the agent saw.
Invariants: a selector sees a decision point and the blocks it may retrieve (complete ones older than Recent2) and returns each once, best
first, ties to the newer block; kept blocks never exceed the cap in tokens, no block is cut, and the order of ranks is kept.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from pamer_lab.blocks.render import query_text, render_message
from pamer_lab.studies.compact.points import Counts, DecisionPoint
from pamer_lab.studies.compact.values import BUDGET, CONTROLS, EMBEDDING, RAW, Columns, Evidence, Group, Material, Need, Reading, Resources
from pamer_lab.studies.decisions import lot
from pamer_lab.trajectory.values import Message


class Selector(Protocol):
    """Ranks the older blocks of a decision point."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def group(self) -> Group: ...

    @property
    def needs(self) -> frozenset[Need]: ...

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        """All eligible blocks, best first."""
        ...


def ranked(blocks: Sequence[int], scores: Sequence[float]) -> list[Evidence]:
    """Blocks by descending score, ties to the newer block."""
    return sorted(
        (Evidence(block, float(score)) for block, score in zip(blocks, scores, strict=True)), key=lambda one: (-one.score, -one.block)
    )


@dataclass(frozen=True)
class Retrieved:
    """Recent2 with raw evidence."""

    selector: Selector
    k: int
    cap: int = 0
    """Maximum number of evidence tokens; zero means no cap."""

    @property
    def name(self) -> str:
        return f"{self.selector.name}-top{self.k}" + (f"-cap{self.cap}" if self.cap else "")

    @property
    def label(self) -> str:
        return f"{self.selector.label} Top{self.k}" + (f", cap {cap_words(self.cap)}" if self.cap else "")

    @property
    def group(self) -> Group:
        return BUDGET if self.cap else self.selector.group

    @property
    def needs(self) -> frozenset[Need]:
        return self.selector.needs

    def read(self, point: DecisionPoint, resources: Resources) -> Reading:
        best = self._ranking(point, resources)[: self.k]
        kept = within_cap(point, best, self.cap, resources.counts)
        return Reading(tuple(sorted((*(one.block for one in kept), *point.window.recent))), kept)

    def represent(self, material: Material) -> Columns:
        return Columns(material.vectors(self))

    def _ranking(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        """Top1, Top3, Top5 and the caps share one ranking."""
        key = ("ranking", self.selector, point.trace_id, point.t)
        if key not in resources.memo:
            resources.memo[key] = self.selector.rank(point, resources)
        found: list[Evidence] = resources.memo[key]
        return found


def cap_words(cap: int) -> str:
    """8192 -> 8K, 500 -> 500 tokens."""
    return f"{cap // 1024}K" if cap % 1024 == 0 else f"{cap:,} tokens"


def within_cap(point: DecisionPoint, ranked: Sequence[Evidence], cap: int, counts: Counts) -> tuple[Evidence, ...]:
    """Blocks that fit the cap, best first; one that does not fit is skipped and the next is tried. Zero means no cap."""
    kept: list[Evidence] = []
    used = 0
    for evidence in ranked:
        size = counts.block(point, evidence.block)
        if not cap or used + size <= cap:
            kept.append(evidence)
            used += size
    return tuple(kept)


@dataclass(frozen=True)
class ByChance:
    """Random Top-K: ranks by a hash of trace, decision point and block, the same on every machine."""

    seed: int = 0
    name: str = "random"
    label: str = "Random"
    group: Group = CONTROLS
    needs: frozenset[Need] = frozenset()

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        return ranked(old, [lot(self.seed, point.trace_id, point.t, number) for number in old])


@dataclass(frozen=True)
class ByEmbedding:
    """Embedding Top-K (the paper's "Qwen"): ranks by cosine between the embedded query, task + Recent2, and each older block."""

    name: str = "embedding"
    label: str = "Embedding"
    group: Group = EMBEDDING
    needs: frozenset[Need] = frozenset({"embedder"})

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        if not old:
            return []
        rows = resources.embeddings([_query(point), *(block_text(point, number) for number in old)])
        return ranked(old, [float(score) for score in rows[1:] @ rows[0]])


def texts_to_embed(points: Sequence[DecisionPoint]) -> list[str]:
    """The distinct queries and older blocks that ranking at these points needs."""
    asked = [point for point in points if point.window.old]
    queries = [_query(point) for point in asked]
    return list(dict.fromkeys([*queries, *(block_text(point, number) for point in asked for number in point.window.old)]))


def _query(point: DecisionPoint) -> str:
    """The controller's recall query at this point."""
    return query_text(point.task, [message for number in point.window.recent for message in point.block(number)])


def block_text(point: DecisionPoint, number: int) -> str:
    """One block as text."""
    return "".join(render_message(message) for message in point.block(number))


UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\uff66-\uff9f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Chinese characters
)
_WORD = re.compile(rf"[^\W{UNSPACED}]+")
_RUN = re.compile(f"[{UNSPACED}]+")


@dataclass(frozen=True)
class Frequencies:
    """How often each token occurs in a block."""

    counts: Counter[str]
    norm: float

    def cosine(self, other: "Frequencies") -> float:
        """Zero if either block is empty."""
        small, large = sorted((self.counts, other.counts), key=len)
        product = sum(number * large[word] for word, number in small.items())
        return product / (self.norm * other.norm) if product else 0.0


@dataclass(frozen=True)
class Lexical:
    """Selective Raw: ranks by cosine of token frequencies between the last block and each older one.

    Tokens are the lower-cased words and numbers in a block's text, call names, arguments and results, without chat markup, so that no
    tokenizer is needed; in scripts without spaces between words, they are pairs of adjacent characters. The paper specifies neither tokens
    nor weights; raw frequencies are used here.
    """

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
    """Lower-cased words, split at spaces and punctuation; in scripts without spaces, pairs of characters."""
    text = text.lower()
    found = _WORD.findall(text)
    if not text.isascii():
        for run in _RUN.findall(text):
            found += ["".join(pair) for pair in pairwise(run)] or [run]
    return found


@dataclass(frozen=True)
class ByRecency:
    """Recency Top-K: the newest of the older blocks, so that evidence and Recent2 are contiguous."""

    name: str = "recency"
    label: str = "Recency"
    group: Group = CONTROLS
    needs: frozenset[Need] = frozenset()

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        return ranked(old, [float(number) for number in old])
