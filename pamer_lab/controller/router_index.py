"""What the deterministic router knows of archived steps: their text, from the index or the raw block, and the terms they mention.

`IndexSource` is the paper's: summaries and step details only. `ArchiveSource` reads the raw archive, which the paper's router never
sees; it exists for comparison, and audit rows name it. Neither scores anything: the router decides what terms are worth to a request.
The words that lead on to something new are a short English list; in other languages nothing counts as leading on.
Invariant: memories are only added, so an index is extended, never rewritten; different memories need a new index.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from pamer_lab.memory import CoveredBlock, Memory
from pamer_lab.memory.summary import block_text, read_detail
from pamer_lab.memory.terms import terms
from pamer_lab.trajectory.values import Message

Vectors = npt.NDArray[np.float32]
EDGE = "\n"
"""Separates the detail lines; no term contains a line break, so none is found across two lines."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_ONWARD = re.compile(
    r"\b(next|new|not yet|not \w+ yet|ahead|unread|unseen|onward|(?:moves?|points?|hands?(?: \w+){0,2}) on|hands? over|fresh|anew|"
    r"starts? (?:over|with)|begins?|(?:turn|go|continu)e?s? (?:to|on|with))\b",
    re.IGNORECASE,
)
"""Words of a sentence that leads on to something not looked at so far."""


@dataclass(frozen=True)
class BlockTerms:
    """What the agent asked in one block, and what it got."""

    asked: frozenset[str]
    """Terms of the assistant's text and calls."""
    called: frozenset[str]
    """Those of its calls alone: what the step was aimed at."""
    aimed: frozenset[str]
    """Those of its calls and of the last sentence before them: what the agent is after now."""
    answered: frozenset[str]
    """Terms of results and of whatever else came after."""

    @property
    def all(self) -> frozenset[str]:
        return self.asked | self.answered


def block_terms(messages: Sequence[Message]) -> BlockTerms:
    """The terms of one block, those of its assistant message separate from those of what followed."""
    called: set[str] = set().union(*(terms(call.arguments) for message in messages[:1] for call in message.tool_calls))
    said: set[str] = set().union(*(terms(message.content) for message in messages[:1]))
    answered: set[str] = set().union(*(terms(message.content) for message in messages[1:]))
    closing: set[str] = set().union(*(terms(_SENTENCE.split(message.content.strip())[-1]) for message in messages[:1]))
    return BlockTerms(frozenset(said | called), frozenset(called), frozenset(called | closing), frozenset(answered))


def superseded(messages: Sequence[Message], looked_at: set[str]) -> set[str]:
    """Terms that a block's results bring up before a later sentence leads on to something the agent has not looked at."""
    sentences = [part for message in messages[1:] for part in _SENTENCE.split(message.content)]
    found = [terms(sentence) for sentence in sentences]
    leads = [number for number, sentence in enumerate(sentences) if _ONWARD.search(sentence) and found[number] - looked_at]
    last = max(leads, default=-1)
    after = set().union(*found[last:]) if leads else set()
    return set().union(*found[:last]) - after if leads else set()


class StepIndex:
    """The covered steps of one session; a step's place is its number among them, in storage order."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        """`given`: terms of the task, which count as brought by no step."""
        self.memories: list[Memory] = []
        self.blocks: list[CoveredBlock] = []
        self.owners: list[str] = []
        """Per place: the memory that covers the step."""
        self.terms: list[BlockTerms] = []
        self.brought: list[frozenset[str]] = []
        """Per place: terms of the answer that the agent had not named itself."""
        self.speaking: dict[str, list[int]] = {}
        """Term -> places of the steps that ask for it or answer with it."""
        self.looked_at: set[str] = set()
        """Every term that the agent named in some step."""
        self.said: dict[int, frozenset[str]] = {}
        """Step number -> what the agent named there."""
        self.origin: dict[str, int | None] = dict.fromkeys(given)
        """Term -> place of the step whose answer brought it; None: the task or the agent said it first."""
        self.used: Counter[int] = Counter()
        """Place -> later steps in which the agent named what the step brought."""
        self._details = ""
        self._starts: list[int] = []
        self._texts: list[Vectors] = []
        self._detail: list[Vectors] = []
        self._matrices: tuple[Vectors, Vectors] | None = None

    def begins(self, memories: Sequence[Memory]) -> bool:
        """Whether the indexed memories are the first of these."""
        known = self.memories
        return len(known) <= len(memories) and all(_same(old, new) for old, new in zip(known, memories, strict=False))

    def add(self, memory: Memory, terms: Sequence[BlockTerms], texts: Sequence[Vectors], details: Sequence[Vectors]) -> None:
        """Add one memory, with the terms and vectors of its blocks."""
        self.memories.append(memory)
        for block, found in zip(memory.blocks, terms, strict=True):
            place = len(self.blocks)
            self.blocks.append(block)
            self.owners.append(memory.memory_id)
            self.terms.append(found)
            self.brought.append(found.answered - found.asked)
            self.said[block.step] = found.asked
            self.looked_at |= found.asked
            self.used.update({origin for term in found.asked if (origin := self.origin.get(term)) is not None})
            for term in found.asked:
                self.origin.setdefault(term, None)
            for term in found.answered:
                self.origin.setdefault(term, place)
            for term in found.all:
                self.speaking.setdefault(term, []).append(place)
            self._starts.append(len(self._details))
            self._details += block.detail.lower() + EDGE
        self._texts.extend(texts)
        self._detail.extend(details)
        self._matrices = None

    def detailed(self, term: str) -> Iterator[int]:
        """Places of the steps whose detail line contains the term."""
        found = self._details.find(term)
        while found >= 0:
            place = bisect_right(self._starts, found) - 1
            yield place
            found = self._details.find(term, self._starts[place + 1]) if place + 1 < len(self._starts) else -1

    def likeness(self, vector: Vectors) -> npt.NDArray[np.float64]:
        """Per place, the larger product of the vector with the step's text (as its source shows it) or with its detail."""  # (places,)
        if self._matrices is None:
            self._matrices = np.stack(self._texts), np.stack(self._detail)  # (places, dimensions) each
        text, detail = self._matrices
        better: npt.NDArray[np.float64] = np.maximum(text @ vector, detail @ vector).astype(np.float64)
        return better


def _same(one: Memory, other: Memory) -> bool:
    return one is other or (one.memory_id, one.checksum) == (other.memory_id, other.checksum)


RouterKind = Literal["index", "archive"]
"""`index`: the router sees summaries and step details, as in the paper. `archive`: it also reads every raw archived block."""

Read = Callable[[Sequence[CoveredBlock]], Mapping[str, Sequence[Message]]]
"""Raw messages of covered blocks, by raw hash."""

_STEP_LINE = re.compile(r"^Step (\d{1,9}): (.*)$")


@dataclass(frozen=True)
class StepText:
    """One archived step as a router sees it."""

    terms: BlockTerms
    text: str
    """What is embedded along with the detail line."""


class StepSource(Protocol):
    """Where the router's view of archived steps comes from."""

    name: str
    """Part of the router's name, and so of every audit row."""

    def steps(self, memory: Memory) -> list[StepText]:
        """One entry per block of the memory, in order."""
        ...


class IndexSource:
    """Reads summaries and step details, nothing else."""

    name = "index"

    def steps(self, memory: Memory) -> list[StepText]:
        lines = summary_lines(memory.summary)
        own = [lines.get(block.step, []) for block in memory.blocks]
        return [
            StepText(index_terms(block.detail, said), "\n".join((block.detail, *said)))
            for block, said in zip(memory.blocks, own, strict=True)
        ]


class ArchiveSource:
    """Reads the raw blocks."""

    name = "archive"

    def __init__(self, read: Read) -> None:
        self._read = read

    def steps(self, memory: Memory) -> list[StepText]:
        raw = self._read(memory.blocks)
        return [StepText(block_terms(raw[block.raw_hash]), block_text(raw[block.raw_hash])) for block in memory.blocks]


def summary_lines(summary: str) -> dict[int, list[str]]:
    """Step -> its lines in a summary that names steps (`Step 4: ...`, then `- ...`); empty for running text."""
    found: dict[int, list[str]] = {}
    for step, line in _numbered(summary):
        found.setdefault(step, []).append(line)
    return found


def _numbered(summary: str) -> Iterator[tuple[int, str]]:
    step: int | None = None
    for line in summary.splitlines():
        match = _STEP_LINE.match(line)
        step = int(match[1]) if match else step if line.startswith("- ") else None
        if step is not None:
            yield step, match[2] if match else line[2:]


def index_terms(detail: str, lines: Sequence[str]) -> BlockTerms:
    """The terms of a step, from its detail and its lines in the summary.

    A detail that is not in the extractive form does not say who named a term, so each counts as asked and answered. Nor does a summary
    line; terms that the agent is not known to have named count as answered.
    """
    parts = read_detail(detail)
    if parts is None:
        named = terms(detail)
        return BlockTerms(named, named, named, named | _terms_of(lines))
    called = terms(parts.calls)
    asked = called | frozenset(name.lower() for name in parts.says)
    answered = terms(parts.line) | frozenset(name.lower() for name in parts.names)
    return BlockTerms(asked, called, called, answered | (_terms_of(lines) - asked))


def _terms_of(lines: Sequence[str]) -> frozenset[str]:
    return frozenset().union(*(terms(line) for line in lines))
