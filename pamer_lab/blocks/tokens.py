"""Token counts per message, each message counted once, and what they sum to: tokens per block, and the context before each decision point.

A `TokenCounter` is a Protocol: the measured one uses a model's tokenizer (`models/tokenizer.py`), the estimated one is used where no
tokenizer is installed, and says so. Invariants: a conversation's count is the sum of its messages' counts, appending messages counts
only the new ones, and the prefix, the tool descriptions and all blocks sum to the trace's tokens.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from pamer_lab.blocks.cut import Cut
from pamer_lab.blocks.render import render_message, render_tools
from pamer_lab.trajectory.values import Message, Tool

CountKind = Literal["measured", "estimated", "recorded"]
"""`measured`: counted with the named tokenizer. `estimated`: by a rule. `recorded`: read from the source."""


class TokenCounter(Protocol):
    """Counts tokens of texts."""

    name: str
    kind: CountKind

    def count(self, texts: Sequence[str]) -> list[int]: ...


class EstimatedCounter:
    """Characters divided by four, rounded up: for when no tokenizer is installed."""

    name = "characters/4"
    kind: CountKind = "estimated"

    def count(self, texts: Sequence[str]) -> list[int]:
        return [(len(text) + 3) // 4 for text in texts]


class MessageTokens:
    """Remembers the count of every message it has seen; a growing conversation costs only its new messages."""

    def __init__(self, counter: TokenCounter, *, limit: int = 200_000) -> None:
        self.counter = counter
        self._limit = limit
        """How many counts are remembered before the memory is emptied."""
        self._known: dict[Message, int] = {}

    def counts(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message in its rendered form."""
        try:
            missing = [message for message in dict.fromkeys(messages) if message not in self._known]
        except TypeError:  # a message built by hand with an unhashable value
            return self.counter.count([render_message(message) for message in messages])
        if missing:
            if len(self._known) + len(missing) > self._limit:
                self._known.clear()
                missing = list(dict.fromkeys(messages))
            fresh = self.counter.count([render_message(message) for message in missing])
            self._known.update(zip(missing, fresh, strict=True))
        return [self._known[message] for message in messages]

    def total(self, messages: Sequence[Message]) -> int:
        return sum(self.counts(messages))

    def tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the tool descriptions."""
        return self.counter.count([render_tools(tools)])[0] if tools else 0


def block_sizes(pieces: Cut, message_tokens: Sequence[int]) -> list[int]:
    """Tokens of each block."""
    return [sum(message_tokens[block.start : block.end]) for block in pieces.blocks]


def context_before(pieces: Cut, message_tokens: Sequence[int], tools: int = 0) -> list[int]:
    """Tokens of the complete recorded history, including tool descriptions, just before each assistant message."""
    context = tools + sum(message_tokens[: pieces.prefix_end])
    before: list[int] = []
    for size in block_sizes(pieces, message_tokens):
        before.append(context)
        context += size
    return before
