"""The history of a running agent: messages are appended, and `at_now` is the policy's view of the decision point they lead to.

Each message is counted once and each closed block built once, so a session's work is linear in its messages. Invariants: `at_now` equals
what a finished trace of the same messages gives at that point; a returned history never changes; a caller that sends its complete
history each time (`follow`) learns from which decision on it differs.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

from pamer_lab.blocks import Block, MessageTokens, cut
from pamer_lab.policies.interface import History
from pamer_lab.trajectory.values import Message, Tool

Value = TypeVar("Value", covariant=True)


class FirstOf(Sequence[Value]):
    """The first `size` entries of a list that only grows, without a copy."""

    def __init__(self, entries: list[Value], size: int) -> None:
        self._entries, self._size = entries, size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Value: ...
    @overload
    def __getitem__(self, place: "slice[Any, Any, Any]") -> Sequence[Value]: ...
    def __getitem__(self, place: "int | slice[Any, Any, Any]") -> "Value | Sequence[Value]":
        if isinstance(place, slice):
            return self._entries[slice(*place.indices(self._size))] if place.step is None or place.step > 0 else list(self)[place]
        if not -self._size <= place < self._size:
            raise IndexError(place)
        return self._entries[place % self._size]

    def __iter__(self) -> Iterator[Value]:
        return islice(self._entries, self._size)


class GrowingHistory:
    """Prefix, blocks and counts of what a running agent has sent so far."""

    def __init__(self, tokens: MessageTokens, tools: Sequence[Tool] = (), messages: Sequence[Message] = ()) -> None:
        """`messages`: those sent so far, if a session is resumed."""
        self._tokens = tokens
        self.tools = tuple(tools)
        self.tools_tokens = tokens.tools(self.tools)
        self._clear()
        self.append(messages)

    def _clear(self) -> None:
        self.messages: list[Message] = []
        self._sums = [0]
        """Tokens of the first 0, 1, ... messages."""
        self.starts: list[int] = []
        """Index of each assistant message."""
        self._blocks: list[Block] = []
        self._cumulative = [0]

    @property
    def t(self) -> int:
        """The decision point: number of assistant messages so far."""
        return len(self.starts)

    @property
    def prefix_end(self) -> int:
        return self.starts[0] if self.starts else len(self.messages)

    def append(self, messages: Sequence[Message]) -> None:
        """Add messages at the end."""
        for message, size in zip(messages, self._tokens.counts(messages), strict=True):
            if message.role == "assistant":
                self.starts.append(len(self.messages))
            self.messages.append(message)
            self._sums.append(self._sums[-1] + size)

    def follow(self, messages: Sequence[Message]) -> int:
        """Take over a complete history; returns the number of decision points, from the first on, whose history is unchanged.

        A history that only grew by the agent's next steps keeps all of them. One that was edited or shortened keeps those whose
        history ends before the first difference.
        """
        known = self.messages
        same = next((at for at, (old, new) in enumerate(zip(known, messages, strict=False)) if old is not new and old != new), None)
        same = min(len(known), len(messages)) if same is None else same
        # A point at the first difference is kept too, unless the new message there is not the agent's.
        kept = sum(
            point < same or (point == same and (same == len(messages) or messages[same].role == "assistant"))
            for point in (*self.starts, len(known))
        )
        if same < len(known):
            self._clear()
            same = 0
        self.append(messages[same:])
        return kept

    def tokens_of(self, start: int, end: int) -> int:
        """Tokens of the messages from `start` up to `end`."""
        return self._sums[end] - self._sums[start]

    def at_now(self, idle: float | None = None) -> History:
        """Everything so far, as a policy sees it; `idle`: seconds since the previous request."""
        return self.at(self.t, idle)

    def at(self, t: int, idle: float | None = None) -> History:
        """The history at decision point `t`, the current one or an earlier one."""
        self._close_blocks()
        end = self.starts[t] if t < self.t else len(self.messages)
        return History(
            t=t,
            messages=FirstOf(self.messages, end),
            prefix_end=self.prefix_end,
            blocks=FirstOf(self._blocks, t),
            cumulative=FirstOf(self._cumulative, t + 1),
            prefix_tokens=self._sums[self.prefix_end],
            tools=self.tools,
            tools_tokens=self.tools_tokens,
            idle=idle,
        )

    def _close_blocks(self) -> None:
        """Build the new blocks, and rebuild the newest one if messages were added to it after it was returned."""
        ends = [*self.starts[len(self._blocks) :], len(self.messages)]
        if self._blocks and self._blocks[-1].end != ends[0]:
            newest = self._block(self._blocks[-1].index, ends[0])
            self._blocks, self._cumulative = [*self._blocks[:-1], newest], [*self._cumulative[:-1], self._size(newest)]
        for end in ends[1:]:
            block = self._block(len(self._blocks), end)
            self._blocks.append(block)
            self._cumulative.append(self._size(block))

    def _block(self, number: int, end: int) -> Block:
        start = self.starts[number]
        (piece,) = cut(self.messages[start:end]).blocks
        return Block(number, start, end, piece.complete)

    def _size(self, block: Block) -> int:
        return self._sums[block.end] - self._sums[self.prefix_end]
