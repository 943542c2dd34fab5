"""What summaries are made of: the `Summariser` and `DetailWriter` Protocols, their source text, the detail line, and a cache of answers.

Invariants: one detail line per block, in the blocks' order; the text stays within the implementation's token limit; a failed summary is
an error that carries the cost of its calls, never an empty text. Source text under its budget is complete; over it, every message
keeps its beginning and end, and a mark says how many characters are missing. A cached answer is used only for identical input, and its
token cost is reported every time, because each policy would have needed it on its own.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, overload

from msgspec.structs import replace as with_fields

from pamer_lab.bounded import Bounded
from pamer_lab.models.usage import NO_USAGE, ChatUsage
from pamer_lab.trajectory.values import Message


@dataclass(frozen=True)
class SourceBlock:
    """One block to be summarised."""

    step: int
    """Block number in the session's history."""
    messages: tuple[Message, ...]


class OnDemand(Sequence[str]):
    """Lines that are written on first access: most policies read only a summary's text."""

    def __init__(self, write: Callable[[], tuple[str, ...]]) -> None:
        self._write = write

    @cached_property
    def _lines(self) -> tuple[str, ...]:
        return self._write()

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        return self._lines[place]

    def __len__(self) -> int:
        return len(self._lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._lines == tuple(other)

    def __hash__(self) -> int:
        return hash(self._lines)


@dataclass(frozen=True)
class Summary:
    """What replaces the blocks."""

    text: str
    details: Sequence[str]
    """One line per block, in the blocks' order; written by a rule, so that they use none of the text's budget."""
    usage: ChatUsage = NO_USAGE
    """Usage of the model that wrote the text; no calls if a rule wrote it."""


@dataclass(frozen=True)
class DetailLines:
    """The index lines of a memory's blocks."""

    lines: tuple[str, ...]
    """One per block, in the blocks' order."""
    usage: ChatUsage = NO_USAGE


class Summariser(Protocol):
    """Writes summaries."""

    name: str
    """Stored with every memory it wrote."""

    def summarise(self, task: str, blocks: Sequence[SourceBlock], later: Sequence[Message] = ()) -> Summary:
        """The summary of these blocks, in view of the task; `later`: the agent's messages after them, which stay in the context."""
        ...


class DetailWriter(Protocol):
    """Writes step details instead of the rule-based ones, for PaMER+, whose router reads them."""

    name: str
    """Stored with every memory it wrote for."""

    def describe(self, task: str, blocks: Sequence[SourceBlock]) -> DetailLines:
        """One line per block, in view of the session's task."""
        ...


def faults(summary: Summary, blocks: Sequence[SourceBlock]) -> list[str]:
    """What is wrong with a summary's shape."""
    found: list[str] = []
    if not summary.text.strip():
        found.append("the summary is empty")
    if len(summary.details) != len(blocks):
        found.append(f"it has {len(summary.details)} step details for {len(blocks)} steps")
    if any(not detail.strip() or "\n" in detail for detail in summary.details):
        found.append("a step detail is empty or has more than one line")
    return found


BUDGET = 40_000
"""Maximum characters of all blocks' message texts together."""
SHORTEST = 120
"""Minimum characters that a clipped message keeps, so that both ends say something."""
LEFT_OUT = " [... {:,} characters left out ...] "
"""The mark in place of text that is left out."""
_LEFT_OUT = re.compile(r" \[\.\.\. [0-9,]{1,20} characters left out \.\.\.\] ")


def within_budget(blocks: Sequence[SourceBlock], budget: int = BUDGET) -> list[SourceBlock]:
    """The blocks, with long texts clipped in the middle if they exceed the budget together."""
    lengths = [_length(message) for block in blocks for message in block.messages]
    if sum(lengths) <= budget:
        return list(blocks)
    cap = max(_cap(lengths, budget), SHORTEST)
    return [replace(block, messages=tuple(_clipped(message, cap) for message in block.messages)) for block in blocks]


def clip(text: str, cap: int) -> str:
    """Beginning and end of a text that is longer than `cap`, with the number of characters left out.

    A text that was already clipped keeps one mark, with the total of both clips: a mark is never cut itself.
    """
    if len(text) <= cap:
        return text
    pieces = _LEFT_OUT.split(text)
    head = (cap + 1) // 2
    before = sum(map(_count, _LEFT_OUT.findall(text)))
    if len(pieces) == 1:
        begin, end = text[:head], text[len(text) - (cap - head) :]
    else:
        begin, end = pieces[0][:head], pieces[-1][max(len(pieces[-1]) - (cap - head), 0) :]
    left_out = before + sum(map(len, pieces)) - len(begin) - len(end)
    return f"{begin}{LEFT_OUT.format(left_out)}{end}"


def readable(text: str) -> str:
    """The text for display: `…` for each of `clip`'s marks that is longer than what it replaces."""
    return _LEFT_OUT.sub(lambda mark: "…" if _count(mark[0]) < len(mark[0]) else mark[0], text)


def _count(mark: str) -> int:
    return int(mark.strip(" [.]").split()[0].replace(",", "") or 0)


def kept_pieces(text: str) -> list[str]:
    """The pieces of a text between `clip`'s marks; a text without a mark is one piece."""
    return [piece for piece in _LEFT_OUT.split(text) if piece.strip()]


def block_text(messages: Sequence[Message]) -> str:
    """A block in plain words: who said what, what was called, what came back."""
    parts: list[str] = []
    for message in messages:
        if message.content:
            who = f"{message.role} {message.name}".strip()
            parts.append(f"{who}: {message.content}")
        parts.extend(f"call {call.name}: {call.arguments}" for call in message.tool_calls)
    return "\n".join(parts)


def _length(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def _clipped(message: Message, cap: int) -> Message:
    if _length(message) <= cap:
        return message
    calls = tuple(with_fields(call, arguments=clip(call.arguments, cap)) for call in message.tool_calls)
    return with_fields(message, content=clip(message.content, cap), tool_calls=calls)


def _cap(lengths: list[int], budget: int) -> int:
    """The largest length per message with which the sum stays within the budget."""
    left, rest = budget, sorted(lengths)
    for place, length in enumerate(rest):
        share = left // (len(rest) - place)
        if length > share:
            return share
        left -= length
    return rest[-1] if rest else budget


ARROW, SAYS, NAMES = " -> ", " | says: ", " | names: "
DETAIL_CHARACTERS = 480
"""Maximum length of a step detail."""
CALL_CHARACTERS = 110
"""Maximum length of one tool call, and of all calls together."""
SAYS_CHARACTERS = 50
"""Maximum length of the names from the agent's own message."""
LINE_CHARACTERS = 80
"""Maximum length of the most informative result line."""


@dataclass(frozen=True)
class StepDetail:
    """The parts of a detail line."""

    calls: str = ""
    says: tuple[str, ...] = ()
    """Names in the agent's message that its calls do not contain."""
    line: str = ""
    """The most informative line of the results."""
    names: tuple[str, ...] = ()
    """Names in the results, the most useful first."""

    def text(self) -> str:
        """One line within `DETAIL_CHARACTERS`; names that do not fit are left out."""
        before = _plain(clip(self.calls, CALL_CHARACTERS)) + _listed(SAYS, self.says, SAYS_CHARACTERS)
        line = _plain(clip(self.line, LINE_CHARACTERS))
        after = line + _listed(NAMES, self.names, DETAIL_CHARACTERS - len(before) - len(ARROW) - len(line))
        return " ".join((before + ARROW + after if after else before).split()) or "(no text)"


def read_detail(text: str) -> StepDetail | None:
    """The parts of a line that `StepDetail.text` wrote; None for a line in any other form."""
    before, arrow, after = f" {text} ".partition(ARROW)
    if not arrow and SAYS not in before:
        return None
    calls, _, says = before.partition(SAYS)
    line, _, names = f" {after}".partition(NAMES)
    return StepDetail(calls.strip(), _split(says), line.strip(), _split(names))


def _plain(text: str) -> str:
    """The text, with nothing left that could be mistaken for one of the line's marks."""
    text = " ".join(text.split())
    for mark in (ARROW, SAYS, NAMES):
        text = text.replace(mark, f" {mark.strip()[:-1]} ")
    return text


def _listed(mark: str, names: Sequence[str], room: int) -> str:
    """The first names that fit, after their mark; empty if none does."""
    kept: list[str] = []
    room -= len(mark)
    for name in names:
        if len(name) + 2 * bool(kept) <= room and ", " not in name:
            kept.append(name)
            room -= len(name) + 2 * (len(kept) > 1)
    return mark + ", ".join(kept) if kept else ""


def _split(names: str) -> tuple[str, ...]:
    return tuple(name for name in names.strip().split(", ") if name)


KEPT = 4096
"""Maximum number of cached answers; the oldest are dropped first."""


class CachedSummariser:
    """A summariser that is asked the same thing only once."""

    def __init__(self, inner: Summariser) -> None:
        self.name = inner.name
        self.inner = inner
        self._kept: Bounded[Hashable, Summary] = Bounded(KEPT)

    def summarise(self, task: str, blocks: Sequence[SourceBlock], later: Sequence[Message] = ()) -> Summary:
        key = (task, tuple((block.step, block.messages) for block in blocks), tuple(later))
        return self._kept.one(key, lambda: self.inner.summarise(task, blocks, later))
