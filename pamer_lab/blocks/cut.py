"""Messages -> prefix and blocks, the split P, O, R of one decision point, and block identities.

Invariant: prefix and blocks concatenated are the messages; a block starts with its assistant message and ends before the next one. An
identity is a hash of what a block says (roles, text, tool names, canonical arguments, which result answers which call by position),
so that call ids and key order do not matter, plus its occurrence number: two equal blocks in one trace stay two.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pamer_lab.trajectory.values import Message


@dataclass(frozen=True)
class Block:
    """One assistant message and everything after it up to the next."""

    index: int
    """Block number, which is also the number of its assistant message."""
    start: int
    """Index of the assistant message."""
    end: int
    """Index after the block's last message."""
    complete: bool
    """Each of its tool calls has its result."""

    def of(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages[self.start : self.end]


@dataclass(frozen=True)
class Cut:
    """A conversation cut into its prefix and blocks."""

    prefix_end: int
    blocks: tuple[Block, ...]

    def before(self, t: int) -> tuple[Block, ...]:
        """The blocks that exist at decision point `t`."""
        return self.blocks[:t]


@dataclass(frozen=True)
class Split:
    """Block numbers at one decision point: what may be compressed, what stays."""

    old: tuple[int, ...]
    """`O_t`: complete blocks older than the recent window."""
    recent: tuple[int, ...]
    """`R_t`: the newest complete blocks, with any incomplete block among or after them."""
    pinned: tuple[int, ...] = ()
    """Incomplete blocks older than the window: never compressed, always active, in their place."""


def cut(messages: Sequence[Message]) -> Cut:
    """Cut a conversation at its assistant messages."""
    starts = [index for index, message in enumerate(messages) if message.role == "assistant"]
    ends = [*starts[1:], len(messages)]
    blocks = tuple(
        Block(number, start, end, is_complete(messages[start:end])) for number, (start, end) in enumerate(zip(starts, ends, strict=False))
    )
    return Cut(starts[0] if starts else len(messages), blocks)


def split(blocks: Sequence[Block], retained: int = 2) -> Split:
    """Split the blocks before a decision point into `O_t` and `R_t`."""
    start = recent_start(blocks, retained)
    older = blocks[:start]
    return Split(
        old=tuple([block.index for block in older if block.complete]),
        recent=tuple([block.index for block in blocks[start:]]),
        pinned=tuple([block.index for block in older if not block.complete]),
    )


def recent_start(blocks: Sequence[Block], retained: int = 2) -> int:
    """Place in `blocks` where `R_t` starts; looks at the newest blocks only, however many there are before."""
    if not retained:
        return len(blocks)
    complete = start = 0
    for place in range(len(blocks) - 1, -1, -1):
        if blocks[place].complete:
            complete += 1
            if complete > retained:
                return start
            start = place
    return 0


def is_complete(messages: Sequence[Message]) -> bool:
    """Whether every call of a block's assistant message has its result."""
    calls = {call.id for call in messages[0].tool_calls}
    return calls <= {message.tool_call_id for message in messages[1:] if message.role == "tool"}


def canonical(messages: Sequence[Message]) -> bytes:
    """The canonical form of one block's messages."""
    order = {call.id: number for number, call in enumerate(messages[0].tool_calls)} if messages else {}
    rows: list[list[Any]] = []
    for message in messages:
        calls = [[call.name, canonical_arguments(call.arguments)] for call in message.tool_calls]
        answers = order.get(message.tool_call_id) if message.role == "tool" else None
        rows.append([message.role, message.content, calls, answers, [[image.media_type, image.bytes] for image in message.images]])
    return orjson.dumps(rows)


def content_hash(messages: Sequence[Message]) -> str:
    """SHA-256 of a block's canonical form."""
    return hashlib.sha256(canonical(messages)).hexdigest()


def identities(blocks: Iterable[Sequence[Message]]) -> list[str]:
    """`<hash>:<occurrence>` for each block of a conversation, in order."""
    seen: Counter[str] = Counter()
    named: list[str] = []
    for messages in blocks:
        digest = content_hash(messages)
        named.append(f"{digest}:{seen[digest]}")
        seen[digest] += 1
    return named


def canonical_arguments(text: str) -> str:
    """Arguments with sorted keys and no white space; text that is not JSON stays as it is."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
