"""One decision point as the conditions see it: what came before it and nothing after.

Knows messages and blocks, not labels or models.
Invariant: a `DecisionPoint` has only messages before its assistant message, so no condition can see the action or anything later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pamer_lab.blocks import Cut, MessageTokens, Split, cut, split
from pamer_lab.blocks.render import task_text
from pamer_lab.errors import InputError
from pamer_lab.features.contexts import decision_index
from pamer_lab.trajectory.recorded import History, recorded_of
from pamer_lab.trajectory.values import Message, Tool, Trace

RECENT = 2
"""Number of blocks in Recent2, which retrieval never returns a second time."""


@dataclass(frozen=True)
class DecisionPoint:
    """The recorded history just before assistant message number `t`."""

    trace_id: str
    t: int
    messages: tuple[Message, ...]
    """Only those before the decision."""
    tools: tuple[Tool, ...]
    pieces: Cut
    """The cut of these messages."""
    rebuilt: int = 0
    """Number of recorded memory operations applied to this history; zero if it is simply all messages before the decision."""

    @property
    def lineage(self) -> str:
        """Points with the same lineage number their messages and blocks in the same way."""
        return f"{self.trace_id}#{self.rebuilt}" if self.rebuilt else self.trace_id

    @cached_property
    def window(self) -> Split:
        """`O_t` and `R_t`: older complete blocks, and the two newest."""
        return split(self.pieces.blocks, RECENT)

    @property
    def last(self) -> int:
        """Number of the newest block; -1 if there is none."""
        return len(self.pieces.blocks) - 1

    def block(self, number: int) -> Sequence[Message]:
        return self.pieces.blocks[number].of(self.messages)

    def recent(self, count: int) -> tuple[int, ...]:
        """The newest `count` complete blocks, with any incomplete one among or after them; zero keeps none."""
        return split(self.pieces.blocks, count).recent if count else ()

    def indices(self, blocks: Iterable[int]) -> tuple[int, ...]:
        """Message numbers of the prefix and of some blocks, in their order."""
        chosen = [self.pieces.blocks[number] for number in sorted(blocks)]
        return (*range(self.pieces.prefix_end), *(index for block in chosen for index in range(block.start, block.end)))

    @cached_property
    def task(self) -> str:
        """What the agent was asked."""
        return task_text(self.messages[: self.pieces.prefix_end])


def decision_point(trace: Trace, t: int, pieces: Cut | None = None, history: History = "full") -> DecisionPoint:
    """One decision point of a trace; `pieces` saves cutting the trace again."""
    pieces = pieces or cut(trace.messages)
    end = decision_index(pieces, t, len(trace.messages))
    recorded = recorded_of(trace, history)
    if recorded is not None and (applied := recorded.applied(end)):
        had = recorded.view(trace.messages, end)
        return DecisionPoint(trace.trace_id, t, had, tuple(trace.tools), cut(had), len(applied))
    return DecisionPoint(trace.trace_id, t, trace.messages[:end], tuple(trace.tools), Cut(pieces.prefix_end, pieces.before(t)))


def decision_points(trace: Trace, points: Iterable[int], history: History = "full") -> list[DecisionPoint]:
    """Several decision points of one trace."""
    pieces = cut(trace.messages)
    if not pieces.blocks:
        raise InputError(f"trace {trace.trace_id!r} has no assistant message, so it has no decision point")
    return [decision_point(trace, t, pieces, history) for t in points]


class Counts:
    """Tokens of prefixes, blocks and contexts; each message is counted once."""

    def __init__(self, tokens: MessageTokens) -> None:
        self.tokens = tokens
        self._messages: dict[str, list[int]] = {}
        self._tools: dict[tuple[str, ...], int] = {}

    @property
    def tokenizer(self) -> str:
        return self.tokens.counter.name

    def know(self, trace_id: str, counts: Sequence[int]) -> None:
        """Reuse a trace's stored message counts; they must come from the same tokenizer."""
        self._messages[trace_id] = list(counts)

    def prefix(self, point: DecisionPoint) -> int:
        """Tool descriptions and the messages before the first assistant message."""
        names = tuple(f"{tool.name}/{tool.description}/{tool.parameters}" for tool in point.tools)
        if names not in self._tools:
            self._tools[names] = self.tokens.tools(point.tools)
        return self._tools[names] + sum(self._of(point)[: point.pieces.prefix_end])

    def block(self, point: DecisionPoint, number: int) -> int:
        block = point.pieces.blocks[number]
        return sum(self._of(point)[block.start : block.end])

    def context(self, point: DecisionPoint, blocks: Iterable[int]) -> int:
        """`Tok(C)` of prefix and blocks, tool descriptions included."""
        return self.prefix(point) + sum(self.block(point, number) for number in blocks)

    def full(self, point: DecisionPoint) -> int:
        """`Tok(C_full)`: everything before the decision."""
        return self.context(point, range(point.last + 1))

    def _of(self, point: DecisionPoint) -> list[int]:
        known = self._messages.get(point.lineage, [])
        if len(known) < len(point.messages):
            known = known + self.tokens.counts(point.messages[len(known) :])
            self._messages[point.lineage] = known
        return known
