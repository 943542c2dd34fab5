"""`oracle` and `none`: the best and the worst possible memory in an arena task, as bounds for the results of policies.

The oracle reads all earlier messages of the task and shows, in one text, the facts found so far and what the next step needs;
`none` shows the task and the newest block. Neither is offered for other traces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pamer_lab.corpus.language import KEPT_UNDER, NOTED, Sight, questions
from pamer_lab.decisions import Decision, spans_of
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources, add_text
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.trajectory.values import Trace


@dataclass(frozen=True)
class _Bound(PlainPolicy):
    family: ClassVar[Family] = "baseline"
    sources: ClassVar[tuple[str, ...]] = ("our own",)
    facts: ClassVar[tuple[Fact, ...]] = (("inferred", "a bound of the arena, not a method"),)
    deviations: ClassVar[tuple[str, ...]] = ("no original to deviate from",)

    def refuses(self, trace: Trace) -> str:
        asked = any(message.role == "user" and questions(message.content) for message in trace.messages)
        return "" if asked else f"policy {self.title!r} is a bound of the arena, and trace {trace.trace_id} is none of its tasks"


@dataclass(frozen=True)
class Oracle(_Bound):
    """Knows what the task needs."""

    title: ClassVar[str] = "oracle"
    description: ClassVar[str] = "bound: the facts that the task needs, found so far, in one short text, and the newest block"
    look: ClassVar[LineLook] = LineLook("green", "solid")

    def start(self, resources: Resources) -> PolicySession:
        return _Oracle(resources)


@dataclass(frozen=True)
class NoMemory(_Bound):
    """Forgets everything but the last step."""

    title: ClassVar[str] = "none"
    description: ClassVar[str] = "bound: the task and the newest block, nothing else"
    look: ClassVar[LineLook] = LineLook("black", "dot")

    def start(self, resources: Resources) -> PolicySession:
        return _NoMemory()


class _NoMemory:
    def turn(self, history: History) -> Decision:
        return Decision("pass", "only the newest block is shown", (*history.head(), *history.raw([(max(history.t - 1, 0), history.t)])))

    def resume(self, decisions: Sequence[Decision]) -> None:
        """Nothing is remembered between turns."""


class _Oracle:
    def __init__(self, resources: Resources) -> None:
        self._tokens = resources.tokens

    def turn(self, history: History) -> Decision:
        newest = history.raw([(max(history.t - 1, 0), history.t)])
        lines = self._lines(history)
        if history.t < 2 or not lines:
            return Decision("pass", "nothing is needed from before the newest block", (*history.head(), *newest))
        text = "\n".join(dict.fromkeys(lines))
        old = [block.index for block in history.blocks[:-1]]
        item = add_text("evidence", text, spans_of(old), self._tokens, source="oracle")
        return Decision("recall", f"{len(lines)} needed lines are shown", (*history.head(), item, *newest))

    def _lines(self, history: History) -> list[str]:
        """The minimum that the next steps need: the requested facts found so far, and the path to the first one still missing."""
        task = next((message.content for message in history.messages[: history.prefix_end] if questions(message.content)), "")
        sight = Sight([message.content for message in history.messages[history.prefix_end :] if message.content])
        values = {wanted: sight.value(wanted) for wanted in questions(task)}
        lines = [NOTED.format(d=wanted.text, v=value) for wanted, value in values.items() if value is not None]
        open_ = [wanted for wanted, value in values.items() if value is None]
        for entry in sight.way(open_[0]) if open_ else ():
            if ref := sight.place(entry):
                return [*lines, f"{entry.entity} [{ref}]"]
            key = sight.kept_under(entry)
            if key is None:
                return lines
            lines.append(KEPT_UNDER.format(e=entry.entity, d=key.text))
            if (value := sight.value(key)) is not None:
                return [*lines, NOTED.format(d=key.text, v=value)]
        return lines

    def resume(self, decisions: Sequence[Decision]) -> None:
        """What is needed follows from the history."""


BOUNDS = {"oracle": Oracle, "none": NoMemory}
"""Known by name, offered only in the arena."""
