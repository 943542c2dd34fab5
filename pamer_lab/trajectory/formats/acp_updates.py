"""Agent Client Protocol sessions (Zed, Gemini CLI, Goose, Grok and others): `session/update` notifications, one per line.

Text and thoughts come in chunks that are joined; a tool call is written once and then updated until it is complete. Prompts are
`session/prompt` requests, or chunks of the user's message.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Turn
from pamer_lab.trajectory.values import ToolCall

NAME = "acp-updates"
CHUNKS = {"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}
CALLS = ("tool_call", "tool_call_update")
DONE = ("completed", "failed", "cancelled")
KNOWN = ("available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update")
"""Updates about the session itself."""


def detect(document: Document) -> bool:
    return any(get.text(_update(row), "sessionUpdate") for row in head(document))


def _update(row: dict[str, Any]) -> dict[str, Any]:
    """The update of a notification, with or without the protocol's envelope."""
    return get.obj(get.obj(row, "params"), "update") or get.obj(row, "update") or (row if "sessionUpdate" in row else {})


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    reader = _Reader(draft)
    for where, row in rows(document):
        reader.add(row, where)
        reader.log.stamp(row.get("timestamp"))
    yield reader.finish()


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.log = Log(draft)
        self.who = ""
        """Whose chunks are being joined."""
        self.pieces: list[str] = []
        self.calls: dict[str, dict[str, Any]] = {}
        """Call id -> its fields so far."""
        self.open: dict[str, dict[str, Any]] = {}
        """The calls that have no result yet."""
        self.turns: dict[str, Turn] = {}

    def add(self, row: dict[str, Any], where: str) -> None:
        update = _update(row)
        kind = get.text(update, "sessionUpdate")
        who = CHUNKS.get(kind, "")
        if who != self.who:
            self._flush(where)
            self._settle(where)
        self.who = who
        params = get.obj(row, "params")
        if who:
            self.pieces.append(content_of(self.draft, update.get("content"), where).text)
        elif kind in CALLS:
            self._call(update, where)
        elif kind == "plan":
            self.log.mark("note", json_text(update.get("entries")), update=kind)
        elif get.items(params, "prompt"):
            self.log.say("user", params["prompt"], where)
        elif "result" in row or get.text(row, "method").startswith(
            ("initialize", "session/new", "session/load", "session/request_permission")
        ):
            self.draft.meta["session"] = self.draft.meta.get("session") or get.text(get.obj(row, "result"), "sessionId")
        elif kind not in KNOWN:
            self.draft.unread(kind or get.text(row, "method") or "no update", where)

    def _flush(self, where: str) -> None:
        text = "".join(self.pieces)
        self.pieces = []
        if not text:
            return
        if self.who == "user":
            self.log.say("user", text, where)
        elif self.who == "thought":
            self.log.open(where).thinking.append(text)
        else:
            if self.log.turn is not None and self.log.turn.texts:
                self.log.close()
            self.log.agent(text, where)

    def _call(self, update: dict[str, Any], where: str) -> None:
        own = get.text(update, "toolCallId")
        known = own in self.calls
        facts = self.calls.setdefault(own, {})
        facts |= {key: value for key, value in update.items() if value is not None}
        if not known:
            self.turns[own] = self.log.call(ToolCall(own, get.text(facts, "name", "title", "kind"), ""), where)
            self.open[own] = facts
        if own in self.open and facts.get("status") in DONE:
            self._answer(own, where)
        elif own not in self.open and (update.get("content") or update.get("rawOutput")) and update.get("status") not in DONE:
            self.draft.unread("output of a call that was already answered", where)

    def _answer(self, own: str, where: str) -> None:
        facts = self.open.pop(own)
        texts = [self._text(item, where) for item in get.as_list(facts.get("content")) if isinstance(item, dict)]
        output = "\n".join(filter(None, texts)) or facts.get("rawOutput")
        status = facts.get("status", "completed")
        self.log.answer(own, output, where, failed=status in DONE[1:], rest={"status": status})

    def _text(self, item: dict[str, Any], where: str) -> str:
        """A piece of a tool's content: a content block, or a change of a file."""
        if item.get("type") == "content":
            return content_of(self.draft, item.get("content"), where).text
        return get.text(item, "text") if item.get("type") == "text" else json_text(item)

    def _settle(self, where: str, *, all: bool = False) -> None:
        """Use the output so far as the result of calls without a status, which some agents never write; with `all`, of every open call."""
        waiting = [own for own, facts in self.open.items() if facts.get("content") or facts.get("rawOutput")]
        for own in waiting:
            if all or "status" not in self.open[own]:
                self._answer(own, where)

    def finish(self) -> Draft:
        self._flush("end")
        self._settle("end", all=True)
        for own, facts in self.calls.items():  # the arguments may come after the line that announces a call
            about = {key: facts.get(key) for key in ("kind", "locations")} if {"kind", "locations"} & facts.keys() else None
            calls = self.turns[own].calls
            place = next(number for number, call in enumerate(calls) if call.id == own)
            calls[place] = structs.replace(calls[place], arguments=json_text(facts.get("rawInput", about)))
        return self.log.finish()
