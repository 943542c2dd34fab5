"""Summaries without a model: the most informative lines of each step, quoted.

Deterministic: the same blocks give the same bytes. Each step's best line is taken first, shortened to the step's share of the
budget, then the best lines overall, as far as they carry something; what is taken stands in the order of the history,
under its step number. Nothing is reworded, so the summary holds no fact that the blocks do not hold. A step's detail is its entry in
the index that PaMER+'s router reads: its calls, its most telling result line, and the names that both sides share.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pamer_lab.blocks import TokenCounter
from pamer_lab.errors import ModelError
from pamer_lab.memory.summary import BUDGET, CALL_CHARACTERS, SourceBlock, StepDetail, Summary, clip, within_budget
from pamer_lab.memory.terms import scores, terms, weight
from pamer_lab.trajectory.values import Message

LINE_CHARACTERS = 240
"""Longest line of a summary; a longer one keeps its beginning and its end."""
SENTENCE_CHARACTERS = 100
"""A line longer than this is taken sentence by sentence."""
SHARE_CHARACTERS = 40
"""Characters of a step's best line that are kept at least, however many steps share the budget."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


@dataclass(frozen=True)
class _Line:
    place: int
    """Position among the lines of all blocks."""
    step: int
    text: str
    score: float
    result: bool
    """It came back to the agent; the agent did not write it."""


class ExtractiveSummariser:
    """Quotes the most telling lines of each step."""

    name = "extractive-2"

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
    found = [
        (block.step, text, bool(number))
        for block in blocks
        for number, message in enumerate(block.messages)
        for text in _message_lines(message)
    ]
    rated = scores([text for _, text, _ in found])
    return [_Line(place, step, text, score, result) for place, ((step, text, result), score) in enumerate(zip(found, rated, strict=True))]


def _message_lines(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        yield clip(f"{call.name}({' '.join(call.arguments.split())})", LINE_CHARACTERS)
    for line in message.content.splitlines():
        for sentence in _SENTENCE.split(line) if len(line) > SENTENCE_CHARACTERS else [line]:
            text = " ".join(sentence.split())
            if any(char.isalnum() for char in text):
                yield clip(text, LINE_CHARACTERS)


def _details(blocks: Sequence[SourceBlock], lines: Sequence[_Line]) -> tuple[str, ...]:
    """One detail per block. Names of the results come in this order: asked for, used in the next step, named by few steps."""
    of_step: dict[int, list[_Line]] = {block.step: [] for block in blocks}
    for line in lines:
        of_step[line.step].append(line)
    asked = [_named(block.messages[:1]) for block in blocks]
    answered = [_named(block.messages[1:]) for block in blocks]
    steps = Counter(name for before, after in zip(asked, answered, strict=True) for name in {**before, **after})
    details: list[str] = []
    for block, before, after, following in zip(blocks, asked, answered, [*asked[1:], {}], strict=True):
        ranked = sorted(after, key=lambda name: (name not in before, name not in following, steps[name]))
        details.append(_detail(block, of_step[block.step], list(before.values()), [after[name] for name in ranked]))
    return tuple(details)


def _detail(block: SourceBlock, lines: Sequence[_Line], said: Sequence[str], names: Sequence[str]) -> str:
    calls = [
        clip(f"{call.name}({' '.join(call.arguments.split())})", CALL_CHARACTERS)
        for message in block.messages
        for call in message.tool_calls
    ]
    more = f"; and {len(calls) - 3} more calls" if len(calls) > 3 else ""
    head = "; ".join(calls[:3]) + more
    heard = [line for line in lines if line.result] or [
        line for line in lines if not any(line.text.startswith(call[:40]) for call in calls)
    ]
    best = max(heard, key=lambda line: (line.score, -line.place), default=None)
    return StepDetail(head, tuple(name for name in said if name not in head), best.text if best else "", tuple(names)).text()


def _named(messages: Sequence[Message]) -> dict[str, str]:
    """Term -> its spelling, in the order of the messages."""
    found: dict[str, str] = {}
    for message in messages:
        for text in (message.content, *(call.arguments for call in message.tool_calls)):
            lowered = text.lower()
            places = {name: lowered.find(name) for name in terms(text)}
            for name in sorted(places, key=lambda name: (places[name], name)):
                spelled = text[max(places[name], 0) :][: len(name)]
                found.setdefault(name, spelled if spelled.lower() == name else name)
    return found
