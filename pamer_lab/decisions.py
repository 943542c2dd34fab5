"""One decision about one request: what was done, why, and what the request is made of afterwards.

The controller, every policy and every stored turn use these values; a live request and a replayed turn add what they measure.
Knows no model and no storage. Invariant: the items, in order, are the request, and their tokens sum to it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from pamer_lab.models.usage import ChatUsage, usage_of
from pamer_lab.trajectory.values import Role

Action = Literal["pass", "compress", "recall", "fallback"]
"""`pass`: nothing was stored or recalled; blocks that stored memories cover are left out. `compress`: older blocks left the
context for a summary. `recall`: memory was put back into the context. `fallback`: something failed, and the request is returned as
it came."""

BlockState = Literal["active", "summarised", "recalled", "restored", "absent"]
"""`active`: the block is in the request word for word. `restored`: memory put its raw text back as evidence, complete or in part
(then the item names the block in `in_part`). `recalled`: a summary that covers it was fetched from memory into the request.
`summarised`: a summary covers it, in the request by rule or kept in memory, or a shortened copy of it is in the request.
`absent`: nothing does; PaMER never lets this happen, other policies do."""

LETTERS: dict[str, BlockState] = {"A": "active", "S": "summarised", "R": "recalled", "X": "restored", ".": "absent"}
"""States are stored as one letter per block."""

ItemKind = Literal["tools", "prefix", "blocks", "edited", "summary", "recalled", "evidence"]
"""`tools`: the tool descriptions. `prefix`: everything before the first assistant message. `blocks`: raw blocks, word for
word. `edited`: one block with some of its texts shortened or replaced, its calls and their results still paired; `source` names the
edit. `summary`: a summary that is in the context by rule. `recalled`: summaries found in memory. `evidence`: raw
steps brought back from memory, quoted in full or in part."""

Span = tuple[int, int]
"""Block numbers from the first up to, not including, the second."""

COMPARED = 256
"""Entries of two contexts that are compared at once."""
_CHARGES = "spent_before"


class Item(Struct, frozen=True, omit_defaults=True, gc=False):
    """One piece of a request. Never part of a cycle: the garbage collector need not look at the millions of a long run."""

    kind: ItemKind
    tokens: int
    spans: tuple[Span, ...] = ()
    """`blocks`: which raw blocks these are (one span). Otherwise: which blocks this text replaces."""
    source: str = ""
    """For texts: the ids of the memories they come from, separated by spaces."""
    text: str = ""
    """Content of the added message, or the edited block as the model reads it; empty for what the history itself contains."""
    role: Role = "user"
    """Role of the added message."""
    in_part: tuple[int, ...] = ()
    """For `evidence`: the blocks of which only an excerpt was restored."""
    replaced: tuple[tuple[int, int], ...] = ()
    """For `edited`: each message whose content differs from the history's, by its place in the block, with the number of characters of
    its content in `text`; together with the block, this restores the messages exactly (`policies/rebuilt.py`)."""


class Spent(Struct, frozen=True, omit_defaults=True):
    """Tokens of one operation other than the main request, including its failed and repeated calls."""

    operation: str
    """`summary`, `details`, `router` or `recall`, by a model or a rule; `features` or `embedding` for other computation."""
    input_tokens: int
    output_tokens: int = 0
    model: str = ""
    """The model or rule that did it."""
    local: bool = False
    """Done without a language model call: kept apart from the tokens one would be billed for."""
    calls: int = 1
    """How often a model worked on it. 0: a rule did it."""
    unknown: int = 0
    """Calls of these that reported no usage; their tokens are in no sum."""
    cached: bool = False
    """Its input is taken to be served from the main request's prompt cache."""

    @classmethod
    def of(cls, operation: str, model: str, usage: ChatUsage, *, cached: bool = False) -> "Spent":
        """What the calls of one operation took."""
        return cls(operation, usage.input_tokens, usage.output_tokens, model, calls=usage.calls, unknown=usage.unknown, cached=cached)


class Decision(Struct, frozen=True, omit_defaults=True):
    """What was done with one request, and why."""

    action: Action
    reason: str
    """Why, in words."""
    items: tuple[Item, ...]
    stored: tuple[Span, ...] = ()
    """Blocks that the session's memory covers after this request."""
    candidate_tokens: int = 0
    """`Tok(O)`: tokens of the complete blocks that could be compressed now."""
    logits: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()
    votes: tuple[bool, ...] = ()
    """One per head; empty where the probe was not asked or failed."""
    memory_ids: tuple[str, ...] = ()
    """Memories written (`compress`) or put into the context (`recall`), in stable order."""
    restored_steps: tuple[int, ...] = ()
    spent: tuple[Spent, ...] = ()
    """All side work in order, including what failed."""
    error: str = ""
    """What failed, also where the request could go on; empty if nothing did."""

    @property
    def tokens(self) -> int:
        """Tokens of the request as it is sent, tools included."""
        return sum([item.tokens for item in self.items])

    @property
    def restored_in_part(self) -> tuple[int, ...]:
        """Those of `restored_steps` of which only an excerpt was restored; their state is `restored` too."""
        return tuple(step for item in self.items for step in item.in_part)


def letters(decision: Decision, t: int) -> str:
    """One letter for each of the `t` earlier blocks: the first state that applies, in the order of `BlockState`."""
    states = bytearray(b"." * t)
    texts = [item for item in decision.items if item.text]
    for letter, spans in (
        (b"S", decision.stored),
        (b"S", _spans(texts, "summary")),
        (b"S", _spans(texts, "edited")),
        (b"R", _spans(texts, "recalled")),
        (b"X", _spans(texts, "evidence")),
        (b"A", _spans(decision.items, "blocks")),
    ):
        for first, last in spans:
            states[first:last] = letter * (last - first)
    return states.decode()


def shared_start(one: Sequence[object], other: Sequence[object]) -> int:
    """Number of entries that both start with; compared in slices, which is fast for identical objects."""
    size = min(len(one), len(other))
    for start in range(0, size, COMPARED):
        end = min(start + COMPARED, size)
        if one[start:end] != other[start:end]:
            while end - start > 1:
                middle = (start + end) // 2
                start, end = (middle, end) if one[start:middle] == other[start:middle] else (start, middle)
            return start
    return size


@lru_cache(maxsize=64)
def head_items(tools_tokens: int | None, prefix_tokens: int | None) -> tuple[Item, ...]:
    """What every context starts with, the same objects at every turn; None: the trace has none."""
    tools = (Item("tools", tools_tokens),) if tools_tokens is not None else ()
    return (*tools, Item("prefix", prefix_tokens)) if prefix_tokens is not None else tools


def block_states(text: str) -> list[BlockState]:
    """Stored letters as words."""
    return [LETTERS[letter] for letter in text]


def _spans(items: Iterable[Item], kind: ItemKind) -> list[Span]:
    return [span for item in items if item.kind == kind for span in item.spans]


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
    """The blocks before `end` that are in none of the spans, which are in order."""
    found: list[Span] = []
    place = 0
    for first, last in spans:
        if place < first:
            found.append((place, first))
        place = last
    return [*found, (place, end)] if place < end else found


@contextmanager
def charging(operation: str, model: str, spent: list[Spent]) -> Iterator[None]:
    """Adds what a failed operation's calls took to `spent`; the error is raised again."""
    try:
        yield
    except Exception as error:
        if (usage := usage_of(error)).calls:
            spent.append(Spent.of(operation, model, usage))
        raise


def charge(error: Exception, spent: Sequence[Spent]) -> None:
    """Attach to an error what the operations before it took."""
    setattr(error, _CHARGES, tuple(spent))


def charges_of(error: Exception) -> tuple[Spent, ...]:
    """What the operations before an error took."""
    return getattr(error, _CHARGES, ())
