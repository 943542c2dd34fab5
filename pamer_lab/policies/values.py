"""What a policy is asked and what it answers: pure values, no model and no storage.

What always holds: a `History` ends before its decision point, so a policy cannot see the future; an `Answer` lists the
context in order, and the tokens of its items sum to the request the model would get.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from pamer_lab.blocks import Block
from pamer_lab.trajectory.values import Message, Role, Tool

Action = Literal["pass", "compress", "recall", "fallback"]
"""`pass`: nothing was stored or recalled. `compress`: older blocks left the context for a summary. `recall`: memory was
put back into the context. `fallback`: something failed, and the request went out as it came."""

ItemKind = Literal["tools", "prefix", "blocks", "summary", "recalled", "evidence"]
"""`tools`: the tool descriptions. `prefix`: everything before the first assistant message. `blocks`: raw blocks, word for
word. `summary`: a summary that stands in the context by rule. `recalled`: summaries found in memory. `evidence`: raw
steps brought back from memory, quoted in full or in part."""

Span = tuple[int, int]
"""Block numbers from the first up to, not including, the second."""


class Item(Struct, frozen=True, omit_defaults=True):
    """One piece of a request."""

    kind: ItemKind
    tokens: int
    spans: tuple[Span, ...] = ()
    """`blocks`: which raw blocks stand here (one span). Otherwise: which blocks this text stands for."""
    source: str = ""
    """For texts: the ids of the memories they come from, separated by spaces."""
    text: str = ""
    """Content of the added message; empty for what the trace itself holds."""
    role: Role = "user"
    """Role of the added message."""
    in_part: tuple[int, ...] = ()
    """For `evidence`: the blocks of which only an excerpt was restored."""


class Spent(Struct, frozen=True, omit_defaults=True):
    """Tokens of one operation beside the main request, its failed and repeated calls included."""

    operation: str
    """`summary`, `details`, `router` or `recall`, by a model or a rule; `features` or `embedding` for other computation."""
    input_tokens: int
    output_tokens: int = 0
    model: str = ""
    """Who did it."""
    local: bool = False
    """Done without a language model call: kept apart from the tokens one would be billed for."""
    calls: int = 1
    """How often a model worked on it."""
    unknown: int = 0
    """Calls of these that reported no usage; their tokens are in no sum."""


class Answer(Struct, frozen=True, omit_defaults=True):
    """What a policy makes of one request."""

    action: Action
    reason: str
    items: tuple[Item, ...]
    stored: tuple[Span, ...] = ()
    """Blocks that the session's memory covers after this turn."""
    candidate_tokens: int = 0
    """Tokens of the complete blocks that could be compressed now."""
    logits: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()
    votes: tuple[bool, ...] = ()
    memory_ids: tuple[str, ...] = ()
    """Memories written (`compress`) or put into the context (`recall`) at this turn."""
    restored_steps: tuple[int, ...] = ()
    spent: tuple[Spent, ...] = ()
    error: str = ""
    """What failed, where something did."""

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)


@dataclass(frozen=True)
class History:
    """Everything before decision point `t`, and nothing after it."""

    t: int
    messages: Sequence[Message]
    prefix_end: int
    blocks: Sequence[Block]
    """The `t` blocks before the decision point."""
    cumulative: Sequence[int]
    """Tokens of the first 0, 1, ... `t` blocks."""
    prefix_tokens: int
    tools: tuple[Tool, ...]
    tools_tokens: int

    @property
    def raw_tokens(self) -> int:
        """Tokens of the request as the agent would have sent it."""
        return self.tools_tokens + self.prefix_tokens + self.cumulative[self.t]

    def tokens(self, spans: Iterable[Span]) -> int:
        """Tokens of raw blocks."""
        return sum(self.cumulative[last] - self.cumulative[first] for first, last in spans)

    def head(self) -> list[Item]:
        """The items every context starts with."""
        items = [Item("tools", self.tools_tokens)] if self.tools else []
        return [*items, Item("prefix", self.prefix_tokens)] if self.prefix_end else items

    def raw(self, spans: Iterable[Span]) -> list[Item]:
        """Raw blocks as items, one per span; empty spans vanish."""
        return [Item("blocks", self.tokens([span]), (span,)) for span in spans if span[0] < span[1]]

    def block_messages(self, block: int) -> Sequence[Message]:
        return self.blocks[block].of(self.messages)


def spans_of(blocks: Iterable[int]) -> tuple[Span, ...]:
    """Sorted block numbers as spans of neighbours."""
    spans: list[Span] = []
    for block in blocks:
        if spans and spans[-1][1] == block:
            spans[-1] = (spans[-1][0], block + 1)
        else:
            spans.append((block, block + 1))
    return tuple(spans)


def blocks_of(spans: Iterable[Span]) -> list[int]:
    """The block numbers of spans, in order."""
    return [block for first, last in spans for block in range(first, last)]


def gaps(spans: Iterable[Span], end: int) -> list[Span]:
    """The blocks before `end` that are in none of the spans, which stand in order."""
    found: list[Span] = []
    place = 0
    for first, last in spans:
        if place < first:
            found.append((place, first))
        place = last
    return [*found, (place, end)] if place < end else found
