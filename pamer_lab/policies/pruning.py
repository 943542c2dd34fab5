"""`lineprune-lexical` and `tokenprune-idf`: tool results lose lines or words once they are no longer recent, by rules without a model.

They run without SWE-Pruner's or LLMLingua-2's weights and are different methods.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from pamer_lab.blocks import recent_start
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item, Spent
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.terms import ERROR, words
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened
from pamer_lab.trajectory.values import Message

SHORTEST = 500
"""Results with fewer characters are left as they are."""
_ANCHOR = re.compile(r"\s{0,200}(?:def|class|import|from|function|func|fn|struct|interface|package|#include|export|@@|diff|\$)\b")
_WORDS = re.compile(r"\S+")


@dataclass(frozen=True)
class LinePrune(PlainPolicy):
    """Keeps lines that share words with what the agent asked for, and lines that give a file its structure."""

    title: ClassVar[str] = "lineprune-lexical"
    description: ClassVar[str] = "older tool results keep the lines that share words with their call, and structural lines"
    sources: ClassVar[tuple[str, ...]] = ("after SWE-Pruner (Ayanami1314/swe-pruner), without its model",)
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "code",
            "SWE-Pruner leaves outputs under 500 characters, keeps gaps of one line, and marks removed runs of lines",
        ),
        ("inferred", "recorded traces have no focus question: the agent's text and the arguments of its call replace it"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "not SWE-Pruner: a line is scored by shared words, not by a 0.6B model",
        "a result is pruned when it leaves the newest `keep` blocks, since the recorded agent saw it in full",
    )
    family: ClassVar[Family] = "pruning"
    look: ClassVar[LineLook] = LineLook("brown", "dash")

    keep: int = field(default=2, metadata={"least": 0})
    """Number of newest complete blocks whose results are left unchanged."""

    def start(self, resources: Resources) -> PolicySession:
        return PruningSession(_Lines(), self.keep, resources)


@dataclass(frozen=True)
class TokenPrune(PlainPolicy):
    """Drops the least informative words, by how many earlier steps contain them."""

    title: ClassVar[str] = "tokenprune-idf"
    description: ClassVar[str] = "older tool results lose the words that most earlier steps have too, down to a share of their words"
    sources: ClassVar[tuple[str, ...]] = ("after LLMLingua-2 (microsoft/LLMLingua), without its model",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "LLMLingua-2 deletes words of a text down to a rate of 0.5 by default and can keep digits"),
        (
            "inferred",
            "no source says when an agent's text is compressed: here each result once, as it leaves the recent blocks",
        ),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "not LLMLingua-2: words are ranked by inverse document frequency over the steps so far, not by a classifier",
        "words with digits always stay",
    )
    family: ClassVar[Family] = "pruning"
    look: ClassVar[LineLook] = LineLook("brown", "dot")

    rate: float = field(default=0.5, metadata={"least": 0.05, "most": 1})
    """Share of a result's words to keep."""
    keep: int = field(default=2, metadata={"least": 0})
    """Number of newest complete blocks whose results are left unchanged."""

    def start(self, resources: Resources) -> PolicySession:
        return PruningSession(_Rare(self.rate), self.keep, resources)


class Pruner(Protocol):
    """Shortens single results."""

    edit: str
    """What was done to a result, for the item and the reason."""
    model: str
    """Name of the model; empty for a rule."""

    def learn(self, messages: Sequence[Message]) -> None:
        """Read a block before it is pruned."""
        ...

    def prune(self, text: str, messages: Sequence[Message]) -> str:
        """A result of this block, shortened; a `LabError` leaves the block as it is."""
        ...


class PruningSession:
    """Each result is pruned once, as it leaves the newest blocks, and then stays byte-identical."""

    def __init__(self, pruner: Pruner, keep: int, resources: Resources) -> None:
        self._arranged = Arranged()
        self._pruner, self._keep, self._tokens = pruner, keep, resources.tokens
        self._shortened = Shortened(resources.tokens)
        self._items: dict[int, Item | None] = {}
        self._done = 0
        self._before = 0
        """Number of turns decided before this session was resumed."""

    def turn(self, history: History) -> Decision:
        self._take_up(history)
        last, spent, errors = recent_start(history.blocks, self._keep), list[Spent](), list[str]()
        for block in range(self._done, last):
            messages = history.block_messages(block)
            self._pruner.learn(messages)
            places = self._shortened.results.of(history, block)
            long = {place: messages[place].content for place in places if len(messages[place].content) >= SHORTEST}
            try:
                pruned = {place: self._pruner.prune(text, messages) for place, text in long.items()}
            except LabError as error:  # the block then stays as it is, as in SWE-Pruner's own harness
                errors.append(f"block {block}: {error}")
                continue
            if long and self._pruner.model:
                read, written = (sum(self._tokens.counter.count([*texts.values()])) for texts in (long, pruned))
                spent.append(Spent("pruning", read, written, self._pruner.model, local=True, calls=len(long)))
            if pruned and (item := self._shortened.block(history, block, self._pruner.edit, pruned)) is not None:
                self._items[block] = item
        self._done = max(self._done, last)
        reason = f"results of {counted(len(self._items), 'block')} older than the newest {self._keep} are {self._pruner.edit}"
        items = (*history.head(), *self._arranged(history, self._items))
        return Decision("pass", reason, items, spent=tuple(spent), error="; ".join(errors))

    def _take_up(self, history: History) -> None:
        """Reread the blocks that were pruned before this session was resumed."""
        if self._before:
            self._done = recent_start(history.blocks[: self._before - 1], self._keep)
            for block in range(self._done):
                self._shortened.results.of(history, block)
                self._pruner.learn(history.block_messages(block))
            self._before = 0

    def resume(self, decisions: Sequence[Decision]) -> None:
        self._before, self._done = len(decisions), 0
        kept = [item for item in decisions[-1].items if item.kind == "edited"] if decisions else []
        self._items = {item.spans[0][0]: item for item in kept}


class _Lines:
    edit = "pruned to fitting lines"
    model = ""

    def learn(self, messages: Sequence[Message]) -> None:
        """Each line is judged by its own block alone."""

    def prune(self, text: str, messages: Sequence[Message]) -> str:
        action = messages[0]
        asked = set(words(action.content)) | {word for call in action.tool_calls for word in words(call.arguments)}
        lines = text.split("\n")
        kept = [
            number in (0, len(lines) - 1) or bool(_ANCHOR.match(line) or ERROR.search(line) or asked & set(words(line)))
            for number, line in enumerate(lines)
        ]
        # Marking a gap of one line would cost as much as the line.
        kept = [flag or (0 < number < len(kept) - 1 and kept[number - 1] and kept[number + 1]) for number, flag in enumerate(kept)]
        shown: list[str] = []
        gone = 0
        for line, flag in zip([*lines, ""], [*kept, True], strict=True):
            if not flag:
                gone += 1
                continue
            shown += [f"(filtered {gone} lines)"] * bool(gone) + [line]
            gone = 0
        return "\n".join(shown[:-1])


class _Rare:
    edit = "pruned to rare words"
    model = ""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._steps = 0
        self._having: Counter[str] = Counter()

    def learn(self, messages: Sequence[Message]) -> None:
        self._steps += 1
        self._having.update({word for message in messages for word in words(message.content)})

    def prune(self, text: str, messages: Sequence[Message]) -> str:
        found = [(match.group(), match.start()) for match in _WORDS.finditer(text)]
        ranked = sorted(range(len(found)), key=lambda number: (-self._worth(found[number][0]), number))
        kept = set(ranked[: math.ceil(self._rate * len(found))])
        lines: list[list[str]] = [[]]
        end = 0
        for number, (word, start) in enumerate(found):
            lines += [[] for _ in range(text.count("\n", end, start))]
            end = start
            if number in kept:
                lines[-1].append(word)
        return "\n".join(" ".join(line) for line in lines if line)

    def _worth(self, word: str) -> float:
        """Rarity of a word's rarest part; infinite if the word has a digit, so that it always stays."""
        if any(char.isdigit() for char in word):
            return math.inf
        return max((math.log((1 + self._steps) / (1 + self._having[part])) for part in words(word)), default=-1.0)
