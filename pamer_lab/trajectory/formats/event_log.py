"""Logs of events by programs we do not know, read by their type names; Claude's Managed Agents and AG-UI are known by name.

One event per line, or a list of them: what the user said, what the agent said, thought and called, and what came back, each with its fields
next to its type or in a payload. Texts that came in pieces are joined. Invariant: an event that no rule takes is counted.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import NO_ARGUMENTS, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.event_words import BODIES, TYPES, body_of, call_id_of, is_mark, kind_of, type_of
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import Row, one_value, rows
from pamer_lab.trajectory.shared.usage import add_usage, usage_beside
from pamer_lab.trajectory.shared.vocabulary import ARGUMENTS, NAMES, call_of, calls_beside, failure, plain_word, read_id
from pamer_lab.trajectory.values import EVENTS, ToolCall, Usage

NAME = EVENTS
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
"""Fields of a call that are none of its arguments."""
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
        """Pieces of the text that is being written, and of the thought before it."""
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
            self.texts.clear()  # it came in pieces before
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
        """What was written in pieces is complete."""
        if self.thoughts or self.texts:
            if self.log.turn and self.log.turn.texts and self.texts:
                self.log.close()
            self.log.agent("".join(self.texts) or None, where, thinking="".join(self.thoughts))
            self.texts, self.thoughts = [], []
        for own, (name, pieces) in self.calls.items():
            self.log.call(ToolCall(own, name, "".join(pieces) or NO_ARGUMENTS), where)
        self.calls = {}
