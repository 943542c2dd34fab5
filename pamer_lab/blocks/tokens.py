"""Token counts per message, each message counted once, and what they sum to: tokens per block, and the context before each decision point.

A `TokenCounter` is a Protocol: the measured one uses a model's tokenizer (`models/tokenizer.py`), the estimated one is used where no
tokenizer is installed, and says so. Invariants: a conversation's count is the sum of its messages' counts, appending messages counts
only the new ones, and the prefix, the tool descriptions and all blocks sum to the trace's tokens.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

from pamer_lab.blocks.cut import Cut
from pamer_lab.blocks.render import render_parts, render_tools
from pamer_lab.trajectory.values import Message, Tool

CountKind = Literal["measured", "estimated", "recorded"]
"""`measured`: counted with the named tokenizer. `estimated`: by a rule. `recorded`: read from the source."""

PIECE_CHARACTERS = 200_000
"""A longer text is counted in pieces of at most this many characters: a tokenizer takes about 170 bytes for each character it holds."""
CUT_WINDOW = 4_000
"""Characters at the end of a piece that are searched for a place to cut."""
SAFE_CUT = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z]|[0-9])|(?<=\n)(?=[A-Za-z0-9])")
"""Where byte-level tokenizers always split a text, so that the pieces' counts add up: between a word and the next, between a
letter and a digit, after a line end. A text with no such place is cut anyway, at a cost of a token or two per piece."""


def pieces(parts: Iterable[str], most: int = PIECE_CHARACTERS) -> Iterator[str]:
    """The concatenation of `parts`, which is never built, in pieces of at most `most` characters, cut where the counts add up."""
    left = ""
    for part in parts:
        start = 0
        while len(left) + len(part) - start > most:
            taken = most - len(left)
            window = left + part[start : start + taken]
            start += taken
            cuts = [found.start() for found in SAFE_CUT.finditer(window, max(1, most - CUT_WINDOW))]
            at = cuts[-1] if cuts else most
            yield window[:at]
            left = window[at:]
        left += part[start:]
    yield left


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
        """How many counts are remembered before all of them are dropped."""
        self._known: dict[Message, int] = {}

    def apart(self) -> "MessageTokens":
        """A copy with the counts so far that remembers new ones separately."""
        found = MessageTokens(self.counter, limit=self._limit)
        found._known.update(self._known)
        return found

    def counts(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message in its rendered form; given more messages than the limit, none is remembered."""
        if len(messages) > self._limit:
            windows = range(0, len(messages), self._limit)
            found = [count for start in windows for count in self.counts(messages[start : start + self._limit])]
            self._known.clear()
            return found
        try:
            missing = [message for message in dict.fromkeys(messages) if message not in self._known]
        except TypeError:  # a message built by hand with an unhashable value
            return self._counted(messages)
        if missing:
            if len(self._known) + len(missing) > self._limit:
                self._known.clear()
                missing = list(dict.fromkeys(messages))
            self._known.update(zip(missing, self._counted(missing), strict=True))
        return [self._known[message] for message in messages]

    def _counted(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message; a giant one is rendered and counted piece by piece, and the others in groups."""
        counts: list[int] = []
        group: list[str] = []
        size = 0
        for message in messages:
            parts = render_parts(message)
            length = sum(map(len, parts))
            if size + length > PIECE_CHARACTERS:
                counts += self.counter.count(group)
                group, size = [], 0
            if length > PIECE_CHARACTERS:
                counts.append(sum(self.counter.count([piece])[0] for piece in pieces(parts)))
            else:
                group.append("".join(parts))
                size += length
        return counts + self.counter.count(group)

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
