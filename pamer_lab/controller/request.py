"""The caller's chat messages -> what the controller works on, each message read once.

The caller sends its complete history every turn. A `History` per session keeps what was read: a turn reads only the new messages, and
compares the old ones with our own copies (so that a history edited in place is detected and read again), unless the caller only appends
(`AppendOnly`).
Invariant: the caller's objects are never changed; a request that breaks the safe tool protocol is rejected, with the place of the fault.
"""

import copy
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from pamer_lab.blocks import Block, MessageTokens, content_hash, is_complete, violations
from pamer_lab.blocks.render import task_text
from pamer_lab.decisions import Item, spans_of
from pamer_lab.errors import FormatError, ProtocolError
from pamer_lab.trajectory.shared.fields import read_calls, read_tools
from pamer_lab.trajectory.shared.parts import read_content
from pamer_lab.trajectory.values import Message, Role, Tool, ToolCall

Chat = dict[str, Any]
"""One OpenAI-shaped message, as the caller's own object."""

ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class AppendOnly(list[Chat]):
    """A history whose owner promises only to append to it: messages already read are not compared again."""


@dataclass(frozen=True)
class Request:
    """One request, read and counted."""

    chat: Sequence[Chat]
    """The caller's own objects."""
    messages: tuple[Message, ...]
    counts: tuple[int, ...]
    """Tokens per message."""
    prefix_end: int
    blocks: tuple[Block, ...]
    block_ids: tuple[str, ...]
    block_tokens: tuple[int, ...]
    tools: tuple[Tool, ...]
    tool_tokens: int

    @property
    def prefix_tokens(self) -> int:
        return sum(self.counts[: self.prefix_end])

    @property
    def tokens(self) -> int:
        """The complete request, tools included."""
        return sum(self.counts) + self.tool_tokens

    @property
    def task(self) -> str:
        """What the agent was asked."""
        return task_text(self.messages[: self.prefix_end])

    def of_blocks(self, numbers: Sequence[int]) -> list[Message]:
        return [message for number in numbers for message in self.blocks[number].of(self.messages)]

    def chat_of_block(self, number: int) -> list[Chat]:
        block = self.blocks[number]
        return list(self.chat[block.start : block.end])

    def rebuilt(self, numbers: Sequence[int], inserted: Sequence[Chat] = (), appended: Sequence["Appended"] = ()) -> list[Chat]:
        """Prefix, inserted messages, then these blocks in order, each with what was appended to it: the caller's own objects."""
        result = [*self.chat[: self.prefix_end], *inserted]
        for number in numbers:
            block = self.blocks[number]
            result.extend(self.chat[block.start : block.end])
            result.extend(entry.message for entry in appended if entry.block == number)
        return result

    def items(self, numbers: Sequence[int], recalled: Sequence[Item] = (), appended: Sequence["Appended"] = ()) -> tuple[Item, ...]:
        """The pieces of a request with these blocks, in order."""
        head = [Item("tools", self.tool_tokens)] if self.tools else []
        if self.prefix_end:
            head.append(Item("prefix", self.prefix_tokens))
        pieces: list[Item] = []
        ends = {entry.block for entry in appended}
        for part in _cut_after(numbers, ends):
            pieces += [Item("blocks", sum(self.block_tokens[slice(*span)]), (span,)) for span in spans_of(part)]
            pieces += [entry.item for entry in appended if entry.block == part[-1]]
        return (*head, *recalled, *pieces)


@dataclass(frozen=True)
class Appended:
    """Recalled memory that stays after a block until the next compression."""

    block: int
    """The block it follows."""
    block_id: str
    """That block's identity; empty if it is not known after a resume."""
    item: Item
    message: Chat


def appended_in(items: Sequence[Item]) -> tuple[Appended, ...]:
    """The recalled memory that a decision's request has after its blocks."""
    found: list[Appended] = []
    block = -1
    for item in items:
        if item.kind == "blocks":
            block = item.spans[0][1] - 1
        elif item.text and block >= 0:
            found.append(Appended(block, "", item, {"role": item.role, "content": item.text}))
    return tuple(found)


def _cut_after(numbers: Sequence[int], ends: Set[int]) -> list[list[int]]:
    """The numbers in parts, each ending with one of the ends or with the last number."""
    parts: list[list[int]] = []
    for place, number in enumerate(numbers):
        if not place or numbers[place - 1] in ends:
            parts.append([])
        parts[-1].append(number)
    return parts


class History:
    """What is known of one session's history so far."""

    def __init__(self, tokens: MessageTokens) -> None:
        self._tokens = tokens
        self._copies: list[Chat] = []
        self._messages: list[Message] = []
        self._counts: list[int] = []
        self._starts: list[int] = []
        """Indices of assistant messages."""
        self._blocks: list[Block] = []
        self._names: list[str] = []
        self._sizes: list[int] = []
        """All blocks but the newest, with their identities and tokens: an append-only history never changes them."""
        self._trusted: AppendOnly | None = None
        """The caller's own list, if it only appends."""
        self._seen: Counter[str] = Counter()
        """Content hashes of the closed blocks."""
        self._tools: tuple[Any, tuple[Tool, ...], int] = ([], (), 0)

    def read(self, chat: Sequence[Chat], tools: Sequence[Any] | None) -> Request:
        """The request; raises `ProtocolError` or `FormatError` if it cannot be processed safely."""
        self._forget_from(self._common(chat))
        known = len(self._messages)
        fresh = [read_message(item, f"messages[{known + number}]") for number, item in enumerate(chat[known:])]
        start = self._starts[-1] if self._starts else 0
        self._check([*self._messages[start:], *fresh], start)
        copies, counts = copy.deepcopy(list(chat[known:])), self._tokens.counts(fresh)
        self._copies.extend(copies)
        self._counts.extend(counts)
        self._starts.extend(known + number for number, message in enumerate(fresh) if message.role == "assistant")
        self._messages.extend(fresh)
        while len(self._blocks) < len(self._starts) - 1:
            number = len(self._blocks)
            block, name, size = self._block(number, self._starts[number + 1])
            self._seen[name.partition(":")[0]] += 1
            self._blocks.append(block)
            self._names.append(name)
            self._sizes.append(size)
        self._trusted = chat if isinstance(chat, AppendOnly) else None
        return self._request(chat, tools)

    def _request(self, chat: Sequence[Chat], tools: Sequence[Any] | None) -> Request:
        newest = [self._block(len(self._starts) - 1, len(self._messages))] if self._starts else []
        block, name, size = zip(*newest, strict=True) if newest else ((), (), ())
        described, described_tokens = self._described(tools)
        return Request(
            chat=chat,
            messages=tuple(self._messages),
            counts=tuple(self._counts),
            prefix_end=self._starts[0] if self._starts else len(self._messages),
            blocks=(*self._blocks, *block),
            block_ids=(*self._names, *name),
            block_tokens=(*self._sizes, *size),
            tools=described,
            tool_tokens=described_tokens,
        )

    def _common(self, chat: Sequence[Chat]) -> int:
        """Number of leading messages that have not changed since the last call."""
        known = self._copies
        if chat is self._trusted and len(chat) >= len(known):
            return len(known)
        if list(chat[: len(known)]) == known:
            return len(known)
        return next((index for index, (new, old) in enumerate(zip(chat, known, strict=False)) if new != old), min(len(chat), len(known)))

    def _forget_from(self, kept: int) -> None:
        if kept == len(self._messages):
            return
        for values in (self._copies, self._messages, self._counts):
            del values[kept:]
        self._starts = [start for start in self._starts if start < kept]
        while len(self._blocks) > max(len(self._starts) - 1, 0):
            self._blocks.pop()
            self._sizes.pop()
            self._seen[self._names.pop().partition(":")[0]] -= 1

    def _check(self, messages: Sequence[Message], start: int) -> None:
        """Check the protocol from the newest known block on; everything before it was checked when it was read."""
        found = violations(messages)
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise ProtocolError(found[0].reason + more, where=f"messages[{start + found[0].index}]")

    def _block(self, number: int, end: int) -> tuple[Block, str, int]:
        start = self._starts[number]
        messages = self._messages[start:end]
        digest = content_hash(messages)
        return Block(number, start, end, is_complete(messages)), f"{digest}:{self._seen[digest]}", sum(self._counts[start:end])

    def _described(self, tools: Sequence[Any] | None) -> tuple[tuple[Tool, ...], int]:
        given = list(tools or ())
        if given != self._tools[0]:
            described = tuple(read_tools(given))
            self._tools = (copy.deepcopy(given), described, self._tokens.tools(described))
        return self._tools[1], self._tools[2]


def read_message(item: Any, where: str) -> Message:
    """One OpenAI-shaped message; anything that does not fit this shape is rejected rather than guessed."""
    if not isinstance(item, dict):
        raise FormatError(f"is {type(item).__name__}, not a message", where=where)
    role = ROLES.get(item.get("role") or "")
    if role is None:
        raise FormatError(f"has the role {item.get('role')!r}; known: {', '.join(ROLES)}", where=where)
    try:
        content = read_content(item.get("content"), where="content")
        calls = _calls(item)
    except FormatError as error:
        raise FormatError(error.reason, where=where) from error
    if content.calls or content.results:
        raise FormatError("has tool calls or results as content parts, not in OpenAI's format", where=where)
    answers, name = item.get("tool_call_id") or "", item.get("name") or ""
    if not isinstance(answers, str) or not isinstance(name, str):
        raise FormatError("has a name or tool_call_id that is not text", where=where)
    return Message(role, content.text, calls, answers, name, images=tuple(content.images))


def _calls(item: Chat) -> tuple[ToolCall, ...]:
    value = item.get("tool_calls")
    if item.get("function_call") is not None:
        raise FormatError("uses the legacy function_call; send tool_calls")
    if value is not None and not isinstance(value, list):
        raise FormatError(f"has tool_calls that are {type(value).__name__}, not a list")
    return tuple(read_calls(value))


def as_chat(message: Message) -> Chat:
    """A stored message in OpenAI's shape, as an agent would send it."""
    item: Chat = {"role": message.role, "content": message.content}
    if message.tool_calls:
        item["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in message.tool_calls
        ]
    if message.tool_call_id:
        item["tool_call_id"] = message.tool_call_id
    if message.name:
        item["name"] = message.name
    return item
