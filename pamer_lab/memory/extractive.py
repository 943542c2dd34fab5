"""Summaries without a model: the lines of each step that tell the most, quoted.

Deterministic: the same blocks give the same bytes. Each step's best line is taken first, shortened to the step's share of the
budget, then the best lines overall, as far as they carry something; what is taken stands in the order of the history,
under its step number. Nothing is worded anew, so the summary holds no fact that the blocks do not hold.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pamer_lab.blocks import TokenCounter
from pamer_lab.errors import ModelError
from pamer_lab.memory.salience import scores, weight
from pamer_lab.memory.source import BUDGET, clip, within_budget
from pamer_lab.memory.summary import SourceBlock, Summary
from pamer_lab.trajectory.values import Message

LINE_CHARACTERS = 240
"""Longest line of a summary; a longer one keeps its beginning and its end."""
SENTENCE_CHARACTERS = 100
"""A line longer than this is taken sentence by sentence."""
SHARE_CHARACTERS = 40
"""Characters of a step's best line that are kept at least, however many steps share the budget."""
DETAIL_CHARACTERS = 280
"""Longest step detail."""
CALL_CHARACTERS = 110
"""Longest form of a tool call within a detail."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


@dataclass(frozen=True)
class _Line:
    place: int
    """Position among the lines of all blocks."""
    step: int
    text: str
    score: float


class ExtractiveSummariser:
    """Quotes the most telling lines of each step."""

    name = "extractive-1"

    def __init__(self, counter: TokenCounter, *, max_tokens: int = 1024, source_characters: int = BUDGET) -> None:
        self._counter = counter
        self._max_tokens = max_tokens
        self._source_characters = source_characters

    def summarise(self, task: str, blocks: Sequence[SourceBlock]) -> Summary:
        if not blocks:
            raise ModelError("there are no blocks to summarise")
        source = within_budget(blocks, self._source_characters)
        lines = _lines(source)
        details = _details(source, lines)
        # About three characters to a token, and a few tokens for the step's number.
        share = max(3 * (self._max_tokens // len(source) - 6), SHARE_CHARACTERS)
        kept = self._fitting(_by_worth(lines, share))
        text = _text(kept) or "\n".join(f"Step {block.step}: (no text)" for block in source)[:LINE_CHARACTERS]
        return Summary(text, details)

    def _fitting(self, lines: list[_Line]) -> list[_Line]:
        """The first lines that fit the token limit together, in the order of the history."""
        sizes = self._counter.count([f"Step {line.step}: {line.text}\n" for line in lines])
        kept: list[_Line] = []
        used = 0
        for line, size in zip(lines, sizes, strict=True):
            if used + size <= self._max_tokens:
                kept.append(line)
                used += size
        while kept and self._counter.count([_text(kept)])[0] > self._max_tokens:
            kept.pop()
        return kept


def extractive_details(blocks: Sequence[SourceBlock], characters: int = BUDGET) -> tuple[str, ...]:
    """One line per block without a model: what was called, and the block's most telling line."""
    source = within_budget(blocks, characters)
    return _details(source, _lines(source))


def _details(blocks: Sequence[SourceBlock], lines: Sequence[_Line]) -> tuple[str, ...]:
    of_step: dict[int, list[_Line]] = {block.step: [] for block in blocks}
    for line in lines:
        of_step[line.step].append(line)
    return tuple(_detail(block, of_step[block.step]) for block in blocks)


def _by_worth(lines: list[_Line], share: int) -> list[_Line]:
    """Each step's best line first, then the others that carry something, best first; each text once."""
    ranked = sorted(lines, key=lambda line: (-line.score, line.place))
    firsts: dict[int, _Line] = {}
    for line in ranked:
        firsts.setdefault(line.step, replace(line, text=_cut(line.text, share)))
    leading = sorted(firsts.values(), key=lambda line: (-line.score, line.place))
    places = {line.place for line in leading}
    unique: dict[str, _Line] = {}
    for line in [*leading, *(line for line in ranked if line.place not in places and weight(line.text) > 1)]:
        unique.setdefault(line.text.casefold(), line)
    return list(unique.values())


def _cut(text: str, cap: int) -> str:
    return text if len(text) <= cap else f"{text[: cap - 3]}..."


def _text(lines: Sequence[_Line]) -> str:
    """Lines under their steps, in the order of the history."""
    parts: list[str] = []
    step = None
    for line in sorted(lines, key=lambda line: line.place):
        parts.append(f"Step {line.step}: {line.text}" if line.step != step else f"- {line.text}")
        step = line.step
    return "\n".join(parts)


def _lines(blocks: Sequence[SourceBlock]) -> list[_Line]:
    found = [(block.step, text) for block in blocks for message in block.messages for text in _message_lines(message)]
    rated = scores([text for _, text in found])
    return [_Line(place, step, text, score) for place, ((step, text), score) in enumerate(zip(found, rated, strict=True))]


def _message_lines(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        yield clip(f"{call.name}({' '.join(call.arguments.split())})", LINE_CHARACTERS)
    for line in message.content.splitlines():
        for sentence in _SENTENCE.split(line) if len(line) > SENTENCE_CHARACTERS else [line]:
            text = " ".join(sentence.split())
            if any(char.isalnum() for char in text):
                yield clip(text, LINE_CHARACTERS)


def _detail(block: SourceBlock, lines: Sequence[_Line]) -> str:
    """What was called, and the line of the step that tells the most."""
    calls = [
        clip(f"{call.name}({' '.join(call.arguments.split())})", CALL_CHARACTERS)
        for message in block.messages
        for call in message.tool_calls
    ]
    said = [line for line in lines if not any(line.text.startswith(call[:40]) for call in calls)]
    best = max(said, key=lambda line: (line.score, -line.place), default=None)
    head = "; ".join(calls[:3]) + (f"; and {len(calls) - 3} more calls" if len(calls) > 3 else "")
    tail = best.text if best else ""
    text = " -> ".join(part for part in (head, tail) if part) or "(no text)"
    return " ".join(clip(text, DETAIL_CHARACTERS).split())
