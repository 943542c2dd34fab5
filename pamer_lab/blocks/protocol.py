"""The safe tool protocol of spec 1: returns what is wrong and where, or nothing.

Knows roles and ids only.
Invariant: a conversation without violations, cut at a block boundary, has none either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pamer_lab.errors import ProtocolError
from pamer_lab.trajectory.values import Message

Kind = Literal["no-id", "id-twice", "no-tool", "answers", "calls", "names-no-call", "too-early", "unknown-call", "answered-twice"]
"""`no-id`, `id-twice`, `no-tool`: a call without an id, with another's id, or without a tool. `answers`, `calls`: a message whose role
cannot do so. `names-no-call`, `too-early`, `unknown-call`, `answered-twice`: a tool result that names no call, comes before any assistant
message, answers no call of its block, or answers one that already has a result."""


@dataclass(frozen=True)
class Violation:
    """One place where the protocol is broken."""

    index: int
    """Index of the message."""
    kind: Kind
    reason: str

    @property
    def where(self) -> str:
        return f"messages[{self.index}]"


def violations(messages: Sequence[Message]) -> list[Violation]:
    """Every violation of the protocol, in message order."""
    found: list[Violation] = []
    calls: set[str] = set()
    answered: set[str] = set()
    started = False
    for index, message in enumerate(messages):
        if message.role == "assistant":
            started, calls, answered = True, set(), set()
            for call in message.tool_calls:
                if not call.id:
                    found.append(Violation(index, "no-id", f"its call of {call.name!r} has no id"))
                elif call.id in calls:
                    found.append(Violation(index, "id-twice", f"call id {call.id!r} is used twice in one block"))
                if not call.name:
                    found.append(Violation(index, "no-tool", f"call {call.id!r} names no tool"))
                calls.add(call.id)
            if message.tool_call_id:
                found.append(Violation(index, "answers", "an assistant message cannot answer a call"))
            continue
        if message.tool_calls:
            found.append(Violation(index, "calls", f"a {message.role} message cannot call tools"))
        if message.role != "tool":
            if message.tool_call_id:
                found.append(Violation(index, "answers", f"a {message.role} message cannot answer a call"))
            continue
        if not message.tool_call_id:
            found.append(Violation(index, "names-no-call", "a tool result names no call"))
        elif not started:
            found.append(Violation(index, "too-early", f"tool result {message.tool_call_id!r} comes before any assistant message"))
        elif message.tool_call_id not in calls:
            found.append(Violation(index, "unknown-call", f"tool result {message.tool_call_id!r} answers no call of its block"))
        elif message.tool_call_id in answered:
            found.append(Violation(index, "answered-twice", f"call {message.tool_call_id!r} is answered twice"))
        answered.add(message.tool_call_id)
    return found


def check(messages: Sequence[Message]) -> None:
    """Raise a `ProtocolError` that names the first violation and how many there are."""
    found = violations(messages)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ProtocolError(found[0].reason + more, where=found[0].where)
