"""What a log consists of before it becomes messages: turns, results, prompts and events in log order.

A log may write a result after the next assistant message, because tools run while the log is written, but the API received it
right after the call; `add_steps` puts it there. Results of ids that a log reuses stay where they are, since only their place
tells which call they answer.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared.parts import Content
from pamer_lab.trajectory.values import EventKind, Image, Message, ToolCall, Usage

REWOUND = "the conversation was rewound here; the abandoned messages before it are kept"


@dataclass(slots=True)
class Turn:
    """One assistant message."""

    where: str = ""
    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    usage: Usage | None = None
    name: str = ""
    at: float | None = None
    """When it was recorded, in seconds since 1970."""

    def add(self, content: Content) -> None:
        """More of what the model said; calls and results inside the content are left to the reader."""
        self.texts += content.texts
        self.thinking += content.thinking
        self.images += content.images

    def merge(self, later: "Turn") -> None:
        """All that a later turn says and calls, where a log splits one message."""
        self.texts += later.texts
        self.calls += later.calls
        self.thinking += later.thinking
        self.images += later.images


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one call."""

    call_id: str
    text: str
    where: str = ""
    images: Sequence[Image] = ()
    error: bool = False
    name: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A message to the model that answers no call."""

    role: Literal["system", "user"]
    text: str
    images: Sequence[Image] = ()
    name: str = ""
    at: float | None = None
    result: bool = False
    """It is a tool's output, for which the source records no call."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that becomes an event."""

    kind: EventKind
    text: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    keeps: Callable[[Sequence[Message]], Collection[int]] | None = None
    """For a compaction: which messages so far the agent kept, besides the leading system messages; None: not recorded."""
    summary: type[Said] | type[Turn] | None = Said
    """For a compaction that records what it kept: the type of step that must follow as its summary; None: it has none."""


def rewound(draft: Draft, where: str, to: Any) -> Mark:
    """The event of a rewind, with a warning: the messages it abandons stay in the trace."""
    draft.warn(where, REWOUND)
    return Mark("context_edit", "the conversation was rewound to an earlier message", {"to": to})


def keep_none(messages: Sequence[Message]) -> tuple[int, ...]:
    """`Mark.keeps` for a compaction that replaced everything so far."""
    return ()


Step = Turn | Result | Said | Mark


def add_steps(draft: Draft, steps: Sequence[Step]) -> None:
    """Append the steps to the draft, each result after its call and before the next turn."""
    asked = Counter(call.id for step in steps if type(step) is Turn for call in step.calls)
    answers = {step.call_id: number for number, step in enumerate(steps) if type(step) is Result and asked[step.call_id] == 1}
    early: set[int] = set()
    for number, step in enumerate(steps):
        if type(step) is Turn:
            _answer_open(draft, steps, answers, early, number)
        before = len(draft.messages)
        match step:
            case Turn():
                text = "\n".join(step.texts)
                thinking = "\n".join(step.thinking)
                draft.assistant(text, step.calls, thinking=thinking, images=step.images, usage=step.usage, name=step.name, where=step.where)
            case Result() if number not in early:
                _add_result(draft, step)
            case Said("system"):
                draft.system(step.text)
            case Said():
                draft.user(step.text, images=step.images, name=step.name, result=step.result)
            case Mark():
                draft.event(step.kind, step.text, **step.facts, **_replaced(draft.messages, step, steps[number + 1 :]))
        if not isinstance(step, Mark):
            draft.stamp(before, step.at)


def _replaced(messages: Sequence[Message], mark: Mark, later: Sequence[Step]) -> dict[str, Any]:
    """What a compaction took out of the context, and the message that followed as its summary."""
    follows = next((step for step in later if not isinstance(step, Mark)), None)
    if mark.keeps is None or (mark.summary is not None and not isinstance(follows, mark.summary)):
        return {}
    head = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    kept = set(mark.keeps(messages))
    gone = [index for index in range(head, len(messages)) if index not in kept]
    if not gone:
        return {}
    return {"replaced": ranges(gone), "summary_message": len(messages) if mark.summary else None}


def ranges(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Ascending numbers as ranges [start, end)."""
    starts = [number for place, number in enumerate(numbers) if not place or numbers[place - 1] != number - 1]
    ends = [number + 1 for place, number in enumerate(numbers) if place + 1 == len(numbers) or numbers[place + 1] != number + 1]
    return tuple(zip(starts, ends, strict=True))


def _answer_open(draft: Draft, steps: Sequence[Step], answers: dict[str, int], early: set[int], now: int) -> None:
    for call_id, _ in draft.open_calls():
        place = answers.get(call_id, -1)
        step = steps[place]
        if place > now and isinstance(step, Result):
            early.add(place)
            _add_result(draft, step)


def stamp_steps(steps: list[Step], first: int, at: float | None) -> None:
    """Note when the steps from number `first` on were recorded."""
    for number in range(first, len(steps) if at is not None else first):
        match steps[number]:
            case Turn() as turn:  # a reader may still be adding to it
                turn.at = at
            case Result() | Said() as step:
                steps[number] = replace(step, at=at)


def _add_result(draft: Draft, step: Result) -> None:
    before = len(draft.messages)
    draft.tool(step.call_id, step.text, name=step.name, images=step.images, error=step.error, where=step.where)
    draft.stamp(before, step.at)
