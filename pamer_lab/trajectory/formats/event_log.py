"""Event logs of unknown programs, read by the names of their event types; Claude's Managed Agents and AG-UI are known by name.

One event per line, or a list of events: messages, thoughts, calls and results, with their fields next to the type or in a payload. The
words of the type name say what an event is: `agent.tool_use`, `toolCallStarted`, `TEXT_MESSAGE_CONTENT`, `user_prompt`. Texts that came in
pieces are joined. Invariant: an event that no rule reads is counted.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import NO_ARGUMENTS, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import Row, one_value, rows
from pamer_lab.trajectory.shared.usage import add_usage, usage_beside
from pamer_lab.trajectory.shared.vocabulary import ARGUMENTS, NAMES, call_of, calls_beside, failure, plain_word, read_id, role_of
from pamer_lab.trajectory.values import EVENTS, ToolCall, Usage

NAME = EVENTS

EventWord = Literal["user", "agent", "system", "thinking", "call", "call_piece", "result", "piece", "thought_piece", "usage", "mark", ""]
"""`piece`, `thought_piece`, `call_piece`: a part of a text, a thought or a call's arguments that is being written. `mark`: it only says
that something began, continues or ended."""

TYPES = ("type", "event", "kind", "event_type", "eventType", "event_name", "action", "role")
BODIES = ("data", "payload", "message", "event", "body", "params", "msg", "item", "properties", "details")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
TOOL = frozenset("tool tools function mcp action command skill shell bash exec".split())
RESULT = frozenset("result results output outputs response completed complete finished finish end ended return returned done".split())
RESULT |= frozenset("success error failed observation".split())
CALL = frozenset(
    "call calls use uses start started request requested begin invoke invoked invocation execute execution input ready".split()
)
PIECE = frozenset("delta chunk partial token stream".split())
THINKING = frozenset("thinking thought thoughts reasoning think".split())
USAGE = frozenset("usage tokens cost".split())
USER = frozenset("user human prompt question instruction task query".split())
AGENT = frozenset("assistant agent ai model llm bot answer final response completion gemini claude gpt text reply generation".split())
MARK = frozenset("start started end ended finish finished status idle init running ping heartbeat progress step turn session run".split())
KNOWN = {
    "claude-managed-agents": {"agent.message", "agent.tool_use", "agent.custom_tool_use", "session.status_idle"},
    "ag-ui-events": {"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "RUN_STARTED"},
}
"""Types of events by which a program is known."""
HOLDERS = "events data log logs entries history transcript timeline records trajectory steps items messages".split()
TEXTS = ("content", "text", "message", "output", "response", "answer", "delta", "value", "prompt", "input", "thought", "thinking", "result")
OUTPUTS = ("content", "output", "result", "response", "observation", "stdout", "text", "value", "message", "error", "stderr")
TIMES = ("processed_at", "timestamp", "created_at", "createdAt", "time", "ts")
BESIDE = {*TYPES, *NAMES, *BODIES, *TIMES, "id", "uuid", "session_id", "sessionId", "seq", "index", "turn", "step"}
"""Fields of a call that are not arguments."""
LOOKED_AT = 300


def detect(document: Document) -> bool:
    found = [row for _, row in _events(document)[:LOOKED_AT] if not isinstance(row.get("role"), str)]  # roles alone are `generic`'s
    kinds = [kind_of(type_of(row), body_of(row)) for row in found if type_of(row)]
    agents = {"agent", "call", "piece"} & set(kinds)
    return bool(agents) and len({"user", "agent", "call", "result", "thinking", "piece"} & set(kinds)) > 1


def _events(document: Document) -> list[Row]:
    root = one_value(document)
    if isinstance(root, dict):
        held = [(key, get.objects(root, key)) for key in HOLDERS]
        key, found = max(held, key=lambda pair: len(pair[1]))
        return list(get.placed(found, key))
    return rows(document) if document.kind in ("json", "jsonl") else []


def read(document: Document) -> Iterator[Draft]:
    found = _events(document)
    types = {type_of(row) for _, row in found}
    name = next((name for name, own in KNOWN.items() if len(own & types) > 1), NAME)
    draft = Draft(name, orphans="as_user")
    if name == NAME:
        draft.warn(found[0][0], f"no known format: {len(found)} events were read by their type names ({', '.join(sorted(types)[:12])})")
    reader = _Reader(draft)
    for where, row in found:
        reader.add(type_of(row), body_of(row), where)
        reader.log.stamp(get.some(row, *TIMES))
    reader.flush("end")
    draft.usage = draft.usage or reader.total
    yield reader.log.finish()


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.log = Log(draft)
        self.texts: list[str] = []
        """Pieces of the text being assembled; `thoughts` holds those of the thought before it."""
        self.thoughts: list[str] = []
        self.calls: dict[str, tuple[str, list[str]]] = {}
        """Calls whose arguments are being written: name and pieces."""
        self.total: Usage | None = None

    def add(self, name: str, body: dict[str, Any], where: str) -> None:
        kind = kind_of(name, body)
        usage = usage_beside(body)
        self.draft.model = self.draft.model or get.text(body, "model")
        text = next((body[key] for key in TEXTS if isinstance(body.get(key), str | list | dict) and body[key]), None)
        if kind in ("piece", "thought_piece") or (kind == "agent" and name.endswith("CONTENT")):
            (self.thoughts if kind == "thought_piece" else self.texts).append(get.text(body, "delta", "deltaContent", *TEXTS))
        elif kind == "call_piece":
            self.calls.setdefault(call_id_of(body), ("", []))[1].append(get.text(body, "delta", *ARGUMENTS))
        elif kind == "call":
            self._call(body, where)
        elif kind == "result":
            self._result(name, body, where)
        elif kind == "thinking":
            self.flush(where)
            if text is not None:
                self.log.open(where).thinking.append(json_text(text))
            else:
                self.draft.passed(name, where, (name,))
        elif kind == "agent" and (text is not None or calls_beside(body)):
            self._said(text, body, where)
        elif kind in ("user", "system") and text is not None:
            self.flush(where)
            self.log.say("system" if kind == "system" else "user", text, where)
        elif text is None and (is_mark(name) or (kind == "usage" and usage)):
            self.flush(where)
            self.draft.passed(name, where, (name,))
        else:
            self.draft.unread(name or "no type", where)
        self._spent(kind, usage)

    def _spent(self, kind: str, usage: Usage | None) -> None:
        if usage and self.log.last and (self.log.last.usage is None or kind in ("agent", "usage")):
            self.log.last.usage = usage
            self.total = add_usage(self.total, usage)

    def _said(self, text: Any, body: dict[str, Any], where: str) -> None:
        if isinstance(text, str) and "".join(self.texts) == text:
            self.texts.clear()  # the pieces came before the complete text
        self.flush(where)
        if self.log.turn and (self.log.turn.texts or self.log.turn.calls):
            self.log.close()
        self.log.agent(text, where)
        for call in read_calls(calls_beside(body)):
            self.log.call(call, where)

    def _call(self, body: dict[str, Any], where: str) -> None:
        self.flush(where)
        own = call_id_of(body) or read_id(body, "id")
        call = call_of({**body, "id": own})
        if call.arguments is NO_ARGUMENTS and own not in self.calls:
            rest = {key: value for key, value in body.items() if key not in BESIDE and not plain_word(key).endswith("id")}
            call = ToolCall(own, call.name, json_text(rest)) if rest else call
        if own and (own in self.log.asked or call.arguments is NO_ARGUMENTS):
            if own not in self.log.asked:  # its arguments may follow in pieces
                self.calls.setdefault(own, (call.name, []))
            return
        self.log.call(call, where)

    def _result(self, name: str, body: dict[str, Any], where: str) -> None:
        output = next((body[key] for key in OUTPUTS if body.get(key) not in (None, "")), None)
        own, tool = call_id_of(body) or read_id(body, "id"), next((body[key] for key in NAMES if isinstance(body.get(key), str)), "")
        if output is None and own in self.calls and not any(key in body for key in OUTPUTS):
            return  # the end of a call's arguments
        self.flush(where)
        if output is None and own not in self.log.asked:
            self.draft.unread(name, where)
            return
        if own not in self.log.asked:
            waiting = self.log.last and len(self.log.last.calls)
            own = "" if waiting else own
            if not waiting and tool and any(body.get(key) is not None for key in ARGUMENTS):
                self.log.call(call_of({**body, "id": own}), where)  # a call with its result in one event
        failed = failure(body) or bool(body.get("error")) or body.get("exit_code") not in (None, 0)
        self.log.answer(own, output, where, failed=failed, name=tool, rest=get.facts(body, "status", "exit_code"))

    def flush(self, where: str) -> None:
        """Write everything that arrived in pieces; it is now complete."""
        if self.thoughts or self.texts:
            if self.log.turn and self.log.turn.texts and self.texts:
                self.log.close()
            self.log.agent("".join(self.texts) or None, where, thinking="".join(self.thoughts))
            self.texts, self.thoughts = [], []
        for own, (name, pieces) in self.calls.items():
            self.log.call(ToolCall(own, name, "".join(pieces) or NO_ARGUMENTS), where)
        self.calls = {}


def type_of(row: dict[str, Any]) -> str:
    """What the source calls an event."""
    return next((row[key] for key in TYPES if isinstance(row.get(key), str) and row[key]), "")


def body_of(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event, those inside its payload included."""
    for key in BODIES:
        if isinstance(inner := row.get(key), dict):
            return {name: value for name, value in row.items() if name != key} | inner
    return row


def kind_of(name: str, body: dict[str, Any]) -> EventWord:
    """The kind of an event, from the words of its type, or from its role if the type is not enough."""
    words = _words(name)
    speaker = role_of(body.get("role"))
    if plain_word(name) in ("observation", "toolresult", "tooloutput") or (words & TOOL and words & RESULT):
        return "result"
    if words & TOOL and not words & USER:
        if words & PIECE or "args" in words:
            return "call_piece"
        return "call" if words & CALL or "name" in body or "tool" in body else ""
    if words & THINKING:
        return "thought_piece" if words & PIECE else "thinking"
    if words & USAGE:
        return "usage"
    if words & PIECE or ("delta" in body and isinstance(body["delta"], str)):
        return "piece" if speaker not in ("user", "system") else ""
    if speaker in ("user", "assistant", "system"):
        return "agent" if speaker == "assistant" else "user" if speaker == "user" else "system"
    if speaker == "tool":
        return "result"
    if words & MARK and not words & {"message", "answer", "text", "response"}:
        return "mark"
    if words & USER and not words & {"assistant", "agent", "ai", "llm", "response"}:
        return "user"
    if words & AGENT and "request" not in words and "call" not in words:
        return "agent"
    return "system" if words == {"system"} or words == {"system", "prompt"} or words == {"system", "message"} else ""


def is_mark(name: str) -> bool:
    """Whether an event only says that something began, continues or ended, as long as it has no text."""
    return bool(_words(name) & MARK) and "error" not in _words(name)


def _words(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


def call_id_of(body: dict[str, Any]) -> str:
    """The call id that a result or a piece refers to, in any field whose name ends like a call id."""
    for key, value in body.items():
        if isinstance(value, str | int) and plain_word(key).endswith(("tooluseid", "callid", "toolid", "invocationid")) and value != "":
            return get.as_text(value)
    return ""
