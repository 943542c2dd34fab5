"""A request and its session's memory -> which blocks are active, which may be compressed, and the recall query.

Pure. Invariant: every block is either active or covered by one stored memory; old, recent and pinned together
are the active blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pamer_lab.blocks import split
from pamer_lab.blocks.render import query_text
from pamer_lab.controller.request import Request
from pamer_lab.decisions import Item, Span, blocks_of, gaps, spans_of
from pamer_lab.memory import Memory, SessionMemory
from pamer_lab.trajectory.values import Message


@dataclass(frozen=True)
class Plan:
    """The working history `P + O + R` of one request."""

    request: Request
    memory: SessionMemory
    old: tuple[int, ...]
    """`O`: complete blocks that could be compressed."""
    recent: tuple[int, ...]
    """`R`: the newest blocks."""
    pinned: tuple[int, ...]
    """Incomplete older blocks: always active, never compressed."""
    waiting: tuple[int, ...] = ()
    """Complete older blocks that a shorter compression leaves in the request."""
    shown: tuple[Item, ...] = ()
    """Recalled memory that stays in the request; its contents are not recalled again."""

    @property
    def active(self) -> tuple[int, ...]:
        return tuple(sorted((*self.old, *self.waiting, *self.recent, *self.pinned)))

    @property
    def retained(self) -> tuple[int, ...]:
        """What stays after a compression."""
        return tuple(sorted((*self.waiting, *self.recent, *self.pinned)))

    @property
    def shown_memories(self) -> set[str]:
        """Memories whose summaries stay in the request."""
        return {name for item in self.shown if item.kind == "recalled" for name in item.source.split()}

    @property
    def shown_steps(self) -> set[int]:
        """Steps whose raw text stays in the request."""
        return set(blocks_of(span for item in self.shown if item.kind == "evidence" for span in item.spans))

    @property
    def shown_tokens(self) -> int:
        return sum(item.tokens for item in self.shown)

    @property
    def candidate_tokens(self) -> int:
        return sum(self.request.block_tokens[number] for number in self.old)

    def tokens(self, numbers: Sequence[int]) -> int:
        """Tokens of a request with these blocks, tools and prefix included."""
        request = self.request
        return request.tool_tokens + request.prefix_tokens + sum(request.block_tokens[number] for number in numbers)

    def shortened(self, halvings: int) -> "Plan":
        """The plan to compress only the oldest part of the candidate, halved `halvings` times."""
        count = halved(len(self.old), halvings)
        return replace(self, old=self.old[:count], waiting=self.old[count:])

    def probe_messages(self) -> list[Message]:
        """`P + R`: what the frozen model reads."""
        request = self.request
        return [*request.messages[: request.prefix_end], *request.of_blocks(self.recent)]

    def query(self, characters: int) -> str:
        """The last `characters` of task and recent blocks as text."""
        return query_text(self.request.task, self.request.of_blocks(self.recent), characters)

    def left_out(self, numbers: Sequence[int]) -> tuple[Span, ...]:
        """The blocks that a request with only these blocks leaves out."""
        return tuple(gaps(spans_of(numbers), len(self.request.blocks)))

    def covered_by(self, memories: Sequence[Memory]) -> tuple[Span, ...]:
        """The blocks of the request that these memories cover."""
        ids = {block.block_id for memory in memories for block in memory.blocks}
        return spans_of(number for number, name in enumerate(self.request.block_ids) if name in ids)


def halved(count: int, halvings: int) -> int:
    """The count halved `halvings` times; after 1 comes the full count again, so that no length is tried forever."""
    lengths = [count >> place for place in range(count.bit_length())] or [count]
    return lengths[halvings % len(lengths)]


def plan(request: Request, memory: SessionMemory, retained: int, shown: Sequence[Item] = ()) -> Plan:
    """Leave out what stored memories cover, and split the rest; `shown` is recalled memory that stays in the request."""
    covered = memory.covered
    left = [block for block, name in zip(request.blocks, request.block_ids, strict=True) if name not in covered]
    parts = split(left, retained)
    return Plan(request, memory, parts.old, parts.recent, parts.pinned, shown=tuple(shown))
