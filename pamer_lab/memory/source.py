"""Blocks -> the text a summary is made from, within a budget of characters.

Under the budget nothing is left out. Over it, every message keeps its beginning and end, the longest messages lose the most, and a marker
says how many characters are missing.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as with_fields

from pamer_lab.memory.summary import SourceBlock
from pamer_lab.trajectory.values import Message

BUDGET = 40_000
"""Characters of all blocks' message texts together."""
SHORTEST = 120
"""Characters a clipped message keeps at least, so that both ends say something."""
_LEFT_OUT = re.compile(r" \[\.\.\. [0-9,]{1,20} characters left out \.\.\.\] ")
"""The mark that `clip` puts between beginning and end."""


def within_budget(blocks: Sequence[SourceBlock], budget: int = BUDGET) -> list[SourceBlock]:
    """The blocks with long texts clipped in the middle where all together exceed the budget."""
    lengths = [_length(message) for block in blocks for message in block.messages]
    if sum(lengths) <= budget:
        return list(blocks)
    cap = max(_cap(lengths, budget), SHORTEST)
    return [replace(block, messages=tuple(_clipped(message, cap) for message in block.messages)) for block in blocks]


def clip(text: str, cap: int) -> str:
    """Beginning and end of a text that is longer than `cap`, with the number of characters left out."""
    if len(text) <= cap:
        return text
    mark = f" [... {len(text) - cap:,} characters left out ...] "
    head = (cap + 1) // 2
    return text[:head] + mark + text[len(text) - (cap - head) :]


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
