"""A trace under construction, which every format reader writes into.

Knows the safe tool protocol and how to make a source conform to it; knows no format. Invariant: after `finish` every tool result
answers exactly one earlier call of its own block, ids are unique within a block, and the warnings name whatever was changed for that.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec import structs

from pamer_lab.errors import FormatError, NotThisFormat
from pamer_lab.trajectory.plain_values import MOST_DEPTH, NO_ARGUMENTS, is_deep, json_text, plain
from pamer_lab.trajectory.tally import EMPTY_MESSAGE, EMPTY_RESULT, NO_ARGUMENTS_GIVEN, NO_NAME_GIVEN, Tally, bounded
from pamer_lab.trajectory.values import Event, EventKind, Image, Label, Message, Source, Tool, ToolCall, Trace, Usage, Warning, WarningKind

Orphans = Literal["refuse", "as_user"]
"""`refuse`: a result without its call makes the trace invalid. `as_user`: it is kept as a user message, with a warning
(for sources that are known to lose calls, such as a log cut by a compaction)."""

NO_MESSAGES = "contains no messages"
NO_ASSISTANT = "contains no assistant message, so there is no decision point"
UNNAMED = "unnamed_tool"
"""Name of a call whose source gives none."""
MOST_CALLS = 2_000
"""Maximum calls in one message; real messages have a few, and each result is looked up among them."""
RECORDS = ("line ", "[")
"""How the places of records begin, in a file of lines and in a list."""


class Draft:
    """Collects messages in order; `finish` checks them and returns the trace."""

    def __init__(self, format: str, *, where: str = "", orphans: Orphans = "refuse") -> None:
        self.format = format
        self.where = where
        """Place of this trace in its file, put before the place of each warning."""
        self.orphans = orphans
        self.messages: list[Message] = []
        self.tools: list[Tool] = []
        self.labels: list[Label] = []
        self.events: list[Event] = []
        self.warnings: list[Warning] = []
        self.task_id = ""
        self.question_id = ""
        self.model = ""
        self.reward: float | None = None
        self.usage: Usage | None = None
        self.meta: dict[str, Any] = {}
        self._open: dict[str, tuple[str, str]] = {}
        """Calls of the newest assistant message: source id -> (our id, tool name)."""
        self._answered: set[str] = set()
        self._numbered: set[str] = set()
        """Our ids of those calls that have none in the source."""
        self._turns = 0
        self._fault: FormatError | None = None
        self._tally = Tally()

    @classmethod
    def broken(cls, format: str, where: str, fault: FormatError) -> "Draft":
        """A trace that could not be read: it keeps its number in the file, and `finish` raises the fault."""
        draft = cls(format, where=where)
        draft._fault = fault
        return draft

    def warn(self, where: str, text: str, kind: WarningKind = "changed") -> None:
        """Record something that could not be represented exactly."""
        self.warnings.append(self.warning(where, text, kind))

    def warning(self, where: str, text: str, kind: WarningKind = "changed") -> Warning:
        """A warning with its place in the file."""
        return Warning(self.place(where) or "file", text, kind)

    def place(self, where: str) -> str:
        """A place in the file: a record (`line 2`, `[2]`) unchanged, any other place prefixed with the place of this trace."""
        own = where.startswith(self.where) or any(self.where.startswith(mark) and where.startswith(mark) for mark in RECORDS)
        return where if own else f"{self.where} {where}".strip()

    def unread(self, type: str, where: str, count: int = 1) -> None:
        """Count a line, part or field that no rule reads; the trace gets one warning with all types, their counts and the first place."""
        self._tally.unread(type, where, count)

    def passed(self, type: str, where: str, known: Collection[str] = ()) -> None:
        """Count a line that is not read; it causes a warning unless its type is `known` to hold nothing of the conversation."""
        if type in known:
            self._tally.passed(type)
        else:
            self.unread(type, where)

    def fault(self, where: str, reason: str) -> FormatError:
        """An error to raise, with its place in the file."""
        return FormatError(reason, where=self.place(where))

    def expect(self, item: Any, where: str, what: str) -> dict[str, Any]:
        """The item as an object; raises a fault such as "is list, not a message" for anything else."""
        if not isinstance(item, dict):
            raise self.fault(where, f"is {type(item).__name__}, not {what}")
        return item

    def each(self, items: Iterable[Any], place: str, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The items of a list with their places, each of which must be an object."""
        for number, item in enumerate(items):
            yield (where := f"{place}[{number}]"), self.expect(item, where, what)

    def kept_as_json(self, where: str, what: str, value: Any) -> str:
        """A value that no rule knows, as JSON text and with a warning."""
        self.warn(where, f"{what} was kept as JSON text")
        return json_text(value)

    def event(self, kind: EventKind, text: str = "", **facts: Any) -> None:
        """Record something the source did to its own context, at the current position."""
        self.event_at(len(self.messages), kind, text, **facts)

    def event_at(self, before_message: int, kind: EventKind, text: str = "", **facts: Any) -> None:
        """Record an event at the message that it came before."""
        before, after = facts.pop("tokens_before", None), facts.pop("tokens_after", None)
        replaced, summary = facts.pop("replaced", ()), facts.pop("summary_message", None)
        self.events.append(Event(kind, before_message, text, before, after, plain(facts), replaced, summary))

    def system(self, text: str) -> None:
        self.messages.append(Message("system", text))

    def user(self, text: str, *, images: Sequence[Image] = (), name: str = "", result: bool = False) -> None:
        """Add a user message; `result`: it is a tool's output for which the source has no call."""
        self.messages.append(Message("user", text, images=tuple(images), name=name, result=result))

    def assistant(
        self,
        text: str = "",
        calls: Iterable[ToolCall] = (),
        *,
        thinking: str = "",
        usage: Usage | None = None,
        images: Sequence[Image] = (),
        name: str = "",
        where: str = "",
    ) -> None:
        """Add an assistant message; empty or repeated call ids are replaced by unique ones."""
        self._open, self._answered, self._numbered = {}, set(), set()
        turn, self._turns = self._turns, self._turns + 1
        kept = tuple(self._unique(calls, turn, where)) if calls else ()
        if not kept and not thinking and not images and (not text or text.isspace()):
            self.came_out_empty(EMPTY_MESSAGE, where)
        self.messages.append(Message("assistant", text, kept, "", name, thinking, tuple(images), usage))

    def _unique(self, calls: Iterable[ToolCall], turn: int, where: str) -> Iterator[ToolCall]:
        used: set[str] = set()
        for number, call in enumerate(calls):
            if number == MOST_CALLS:
                raise self.fault(where, f"has more than {MOST_CALLS:,} calls in one message")
            own = call.id or f"call_{turn}_{number}"
            if own in used:
                self.warn(where, f"call id {own!r} is used twice in one message; the second became '{own}#{number}'")
                own = f"{own}#{number}"
            used.add(own)
            if not call.id:
                self._numbered.add(own)
            if call.arguments is NO_ARGUMENTS:
                self.came_out_empty(NO_ARGUMENTS_GIVEN, where)
            self._open.setdefault(call.id or own, (own, call.name))
            self._open.setdefault(own, (own, call.name))
            if not call.name:
                self.came_out_empty(NO_NAME_GIVEN, where)
            yield call if own == call.id and call.name else ToolCall(own, call.name or UNNAMED, call.arguments)

    def tool(self, call_id: str, text: str, *, name: str = "", images: Sequence[Image] = (), error: bool = False, where: str = "") -> None:
        """Add a tool result; with no id it answers the first open call (with that name, if there is one)."""
        own, call_name = self._match(call_id, name)
        if not own:
            self._orphan(call_id, text, name, images, where)
            return
        self._answered.add(own)
        if not images and (not text or text.isspace()):
            self.came_out_empty(EMPTY_RESULT, where)
        self.messages.append(Message("tool", text, (), own, name or call_name, "", tuple(images), None, error))

    def asked(self, text: str, calls: Sequence[ToolCall], name: str) -> bool:
        """Fast path: add an assistant message that needs no further check. False, and nothing added, if it does."""
        if len(calls) == 1:
            own = calls[0].id
            opened = {own: (own, calls[0].name)}
        elif calls or (text and not text.isspace()):
            opened = {call.id: (call.id, call.name) for call in calls}
        else:
            return False
        if "" in opened or len(opened) != len(calls) or len(calls) > MOST_CALLS:
            return False
        self._open, self._answered = opened, set()
        self._turns += 1
        self.messages.append(Message("assistant", text, tuple(calls), "", name))
        return True

    def answered(self, call_id: str, text: str, name: str) -> bool:
        """Fast path: add a result that has content and names an open call. False, and nothing added, for any other."""
        own, call_name = self._open.get(call_id, ("", ""))
        if not own or own in self._answered or not text or text.isspace():
            return False
        self._answered.add(own)
        self.messages.append(Message("tool", text, (), own, name or call_name))
        return True

    def stamp(self, first: int, at: float | None) -> None:
        """Note when the messages from number `first` on were recorded; None leaves them without a time."""
        if at is not None:
            self.messages[first:] = [structs.replace(message, at=at) for message in self.messages[first:]]

    def came_out_empty(self, what: str, where: str) -> None:
        """Count a message or result without content; the trace gets one warning of each kind with its count and the first place."""
        self._tally.empty(what, where or f"messages[{len(self.messages)}]")

    def insert(self, index: int, message: Message) -> None:
        """Insert a message that was found late; events after it move with their messages."""
        self.messages.insert(index, message)
        self.events = [event.shifted(index) for event in self.events]

    def open_calls(self) -> list[tuple[str, str]]:
        """(id, tool name) of the newest assistant message's calls that have no result yet."""
        unique = dict.fromkeys(self._open.values())
        return [(own, name) for own, name in unique if own not in self._answered]

    @property
    def let_go(self) -> str:
        """Why another reader should try the file: this one found no agent output. Empty if it did, or if the file itself is faulty."""
        if self._fault:
            return self._fault.reason if isinstance(self._fault, NotThisFormat) else ""
        turns = [message for message in self.messages if message.role == "assistant"]
        if any(turn.content or turn.tool_calls or turn.thinking or turn.images for turn in turns):
            return ""
        return "its assistant messages came out empty" if turns else "no assistant message was found"

    def size(self) -> int:
        """Characters of all messages: the minimum that storing them takes."""
        texts = sum([len(message.content) + len(message.thinking) for message in self.messages])
        return texts + sum([len(call.arguments) for message in self.messages if message.tool_calls for call in message.tool_calls])

    def finish(self, source: Source, trace_id: str) -> Trace:
        """The finished trace; refuses one without an agent turn."""
        if self._fault:
            raise FormatError(self._fault.reason, where=self._fault.where or self.where)
        if not any(message.role == "assistant" for message in self.messages):
            raise FormatError(NO_ASSISTANT if self.messages else NO_MESSAGES, where=self.where)
        reward = self.reward
        if reward is not None and not math.isfinite(reward):
            self.warn("reward", "is not a finite number; left out")
            reward = None
        task = str(self.task_id)
        if others := self._tally.others:
            self.meta["other_lines"] = others
        return Trace(
            trace_id=trace_id,
            question_id=str(self.question_id) or task or trace_id,
            format=self.format,
            messages=tuple(self.messages),
            tools=tuple(self._shallow(tool) for tool in self.tools),
            labels=tuple(sorted(self.labels, key=lambda label: (label.t, label.target))),
            events=tuple(self.events),
            task_id=task,
            model=self.model,
            reward=reward,
            usage=self.usage,
            warnings=self._bounded_warnings(),
            source=source,
            meta=plain(self.meta),
        )

    def _shallow(self, tool: Tool) -> Tool:
        if not is_deep(tool.parameters):
            return tool
        self.warn("tools", f"the parameters of {tool.name[:60]!r} are nested more than {MOST_DEPTH} levels deep; left out")
        return Tool(tool.name, tool.description, {})

    def _bounded_warnings(self) -> tuple[Warning, ...]:
        return (*bounded(self.warnings, self.where or "file"), *(self.warning(*found) for found in self._tally.warnings()))

    def _match(self, call_id: str, name: str) -> tuple[str, str]:
        if call_id and (call_id in self._open or not self._numbered):
            own, call_name = self._open.get(call_id, ("", ""))
            if own in self._answered:
                again = [pair for pair in self.open_calls() if pair[0].startswith(f"{call_id}#")]
                return again[0] if again else ("", "")
            return own, call_name
        waiting = self.open_calls()
        if call_id:
            waiting = [pair for pair in waiting if pair[0] in self._numbered]  # the source gives ids to its results only
        named = [pair for pair in waiting if pair[1] == name] if name else []
        return (named or waiting or [("", "")])[0]

    def _orphan(self, call_id: str, text: str, name: str, images: Sequence[Image], where: str) -> None:
        place = where or f"messages[{len(self.messages)}]"
        what = f"tool result {call_id!r}" if call_id else "a tool result"
        if not call_id and self._turns and not self._open:
            self.warn(place, "a tool result follows an assistant message without calls (its call is text); kept as a user message")
            self.user(text, images=images, name=name, result=bool(name))  # unnamed, it is text like its call
            return
        if self.orphans == "refuse":
            raise self.fault(place, f"{what} answers no open call of the assistant message before it; add the call or remove the result")
        self.warn(place, f"{what} answers no open call; kept as a user message")
        self.user(text, images=images, name=name, result=True)
