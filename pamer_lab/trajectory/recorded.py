"""What an agent really had in its context before a decision, rebuilt from the memory operations its trace records.

Knows messages and events, nothing of blocks, tokens or models. Invariant: a view holds only messages before the decision, each as
recorded or as changed by an operation before the decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from msgspec import structs

from pamer_lab.trajectory.labels import is_compression
from pamer_lab.trajectory.values import Event, Message, Trace

History = Literal["full", "recorded"]
"""`full`: everything before the decision, whatever the agent compressed away. `recorded`: what the agent had, with recorded
summaries in place of what they replaced; a trace that records no such operation counts as full."""
HISTORIES: tuple[History, ...] = get_args(History)


@dataclass(frozen=True)
class Recorded:
    """The memory operations of one trace."""

    events: tuple[Event, ...]
    """Those that say which messages they replaced, in order."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Recorded tokens of the context at a decision point, where the source counted them per turn."""

    def applied(self, end: int) -> tuple[Event, ...]:
        """The operations done before message `end`; one whose summary is itself a message counts once that message was written."""
        return tuple(event for event in self.events if _done_before(event) <= end)

    def view(self, messages: Sequence[Message], end: int) -> tuple[Message, ...]:
        """The messages in the agent's context just before message `end`."""
        held = self._held(messages, end)
        return tuple(held[place] for place in sorted(held))

    def gone(self, end: int) -> frozenset[int]:
        """Indices of the messages that were taken out or shortened before message `end`."""
        return frozenset(index for event in self.applied(end) for first, last in event.replaced for index in range(first, last))

    def stand_ins(self, messages: Sequence[Message], end: int) -> tuple[Message, ...]:
        """The messages of the view that replace removed ones; a summary that is a tool result stays with its call."""
        held, gone = self._held(messages, end), self.gone(end)
        return tuple(held[place] for place in sorted(held) if place[1] == 0 or place[0] in gone)

    def _held(self, messages: Sequence[Message], end: int) -> "Held":
        held = {(index, 1): message for index, message in enumerate(messages[:end])}
        for event in self.applied(end):
            _apply(held, event)
        return held


Held = dict[tuple[int, int], Message]
"""(message index, 1) -> message; a summary inserted before that message has the key (index, 0)."""


def recorded_of(trace: Trace, history: History = "recorded") -> Recorded | None:
    """A trace's memory operations; None if the full history is requested, or the trace does not record what was replaced."""
    if history == "full":
        return None
    events = tuple(sorted((event for event in trace.events if event.replaced), key=lambda event: event.before_message))
    return Recorded(events, _sizes(trace)) if events else None


def count_recorded(traces: Iterable[Trace]) -> int:
    """How many traces record memory operations that a history can be rebuilt from."""
    return sum(any(event.replaced for event in trace.events) for trace in traces)


def memory_from(trace: Trace) -> int:
    """The first decision point at which something lay outside the agent's context, or in a memory it wrote; `turns` if never."""
    kinds = ("compaction", "memory_write")
    ends = [_done_before(event) for event in trace.events if event.replaced or event.kind in kinds]
    first = min(ends, default=len(trace.messages))
    turn = -1
    for index, message in enumerate(trace.messages):
        if message.role == "assistant":
            turn += 1
            if index >= first:
                return turn
            if any(is_compression(call.name) for call in message.tool_calls):
                return turn + 1
    return trace.turns


def _done_before(event: Event) -> int:
    return event.before_message if event.summary is None else event.summary + 1


def _apply(held: Held, event: Event) -> None:
    gone = [place for place in held if any(start <= place[0] < end for start, end in event.replaced)]
    only = held[gone[0]] if len(gone) == 1 else None
    for place in gone:
        del held[place]
    anchor = (event.replaced[-1][0], 0)
    if event.summary is not None:
        written = held.get((event.summary, 1))
        if written is not None and written.role in ("user", "system"):  # results and answers stay next to their calls
            held[anchor] = held.pop((event.summary, 1))
    elif only is not None and event.kind == "context_edit":
        held[gone[0]] = structs.replace(only, content=event.text)
    elif event.text:
        held[anchor] = Message("user", event.text)


def _sizes(trace: Trace) -> dict[int, int]:
    """Decision point -> recorded tokens; `token_trajectory` counts them after each turn, which is what the next decision had."""
    rows = trace.meta.get("token_trajectory")
    found: dict[int, int] = {}
    for row in rows if isinstance(rows, list) else []:
        turn, tokens = (row.get("turn"), row.get("tokens_actual")) if isinstance(row, dict) else (None, None)
        if isinstance(turn, int) and isinstance(tokens, int) and tokens > 0:
            found[turn + 1] = tokens
    return found
