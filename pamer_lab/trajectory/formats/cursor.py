"""Cursor: the CLI's `--output-format stream-json`, and agent transcripts (`{role, message}` per line).

The stream logs a tool's start and end on separate lines, with the tool's name as the only key of `tool_call`; lines of one model call
share `model_call_id` and form one turn. With partial output, a message comes in pieces and then complete: it is read once. Transcripts
hold no results.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Turn
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import ToolCall

NAME = "cursor"
SUFFIX = "ToolCall"


def detect(document: Document) -> bool:
    first = head(document)
    calls = any(row.get("type") == "tool_call" and isinstance(row.get("tool_call"), dict) for row in first)
    return calls or _is_plain_stream(first) or (bool(first) and all(_is_transcript(row) for row in first))


def _is_plain_stream(first: list[dict[str, Any]]) -> bool:
    """A stream without tool calls: unlike Claude's, its opening line lists no tools and its messages have no ids."""
    opening = first[0] if first else {}
    if opening.get("subtype") != "init" or "tools" in opening or "permissionMode" not in opening:
        return False
    return all(get.obj(row, "message").get("id") is None for row in first)


def _is_transcript(row: dict[str, Any]) -> bool:
    body = get.obj(row, "message")
    return row.get("role") in ("user", "assistant") and "content" in body and "role" not in body and "type" not in row


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    reader = _Reader(draft)
    for where, row in rows(document):
        if _is_transcript(row):
            reader.say(row["role"], row["message"].get("content"), where)
        else:
            reader.add(where, row)
            reader.log.stamp(row.get("timestamp_ms"))
    yield reader.finish()


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.log = Log(draft)
        self.pieces: list[str] = []
        """Text of the message that is being written in pieces."""
        self.thought: list[str] = []
        self.calls: dict[str, Turn] = {}
        """Model call -> its turn."""

    def say(self, role: str, value: Any, where: str) -> None:
        if role == "assistant":
            self.log.close()
            self.log.agent(value, where)
        else:
            self.log.say("user", value, where)

    def add(self, where: str, row: dict[str, Any]) -> None:
        kind, body = row.get("type"), get.obj(row, "message")
        if kind == "assistant" and body:
            self._assistant(where, row, body)
            return
        if kind != "thinking":
            self._flush(where)
        match kind:
            case "user":
                self.log.say("user", body.get("content"), where)
            case "thinking":
                self.thought.append(get.text(row, "text"))
            case "tool_call":
                self._tool(where, row, get.obj(row, "tool_call"))
            case "system":
                self.draft.model = self.draft.model or get.text(row, "model")
                self.draft.meta |= {"session": row.get("session_id"), "cwd": row.get("cwd")}
            case "result":
                self.draft.usage = read_usage(row.get("usage"))
                self.draft.meta |= get.facts(row, "duration_ms", "is_error") | {"status": row.get("subtype")}
                said = "".join(text for step in self.log.steps if isinstance(step, Turn) for text in step.texts)
                if (text := get.text(row, "result")) and "".join(text.split()) not in "".join(said.split()):
                    self.log.mark("note", text, event="result")
            case _:
                self.draft.unread(str(kind), where)

    def _assistant(self, where: str, row: dict[str, Any], body: dict[str, Any]) -> None:
        """Add a message. Pieces have a timestamp and no model call id; the complete text that follows repeats them."""
        content = content_of(self.draft, body.get("content"), where)
        if "timestamp_ms" in row and "model_call_id" not in row and not content.calls:
            self.pieces += content.texts
            return
        if "".join(self.pieces) in (content.text, ""):
            self.pieces = []
        self._flush(where)
        self._turn(where, get.text(row, "model_call_id"), new=True)
        turn = self.log.agent(body.get("content"), where, thinking="".join(self.thought))
        turn.usage = read_usage(body.get("usage"))
        self.thought = []

    def _turn(self, where: str, key: str, *, new: bool = False) -> None:
        """Continue the turn of this model call, or begin one."""
        if key and key in self.calls:
            self.log.turn = self.calls[key]
            return
        if new:
            self.log.close()
        if key and self.log.turn not in self.calls.values():
            self.calls[key] = self.log.open(where)
        elif key:
            self.log.close()
            self.calls[key] = self.log.open(where)

    def _flush(self, where: str) -> None:
        if self.pieces:
            self.log.close()
            self.log.agent("".join(self.pieces), where, thinking="".join(self.thought))
            self.pieces, self.thought = [], []

    def _tool(self, where: str, row: dict[str, Any], body: dict[str, Any]) -> None:
        own = get.text(row, "call_id") or get.text(body, "id")
        key = next((name for name, value in body.items() if isinstance(value, dict)), "")
        inner = get.obj(body, key)
        name = get.text(inner, "name", "toolName") or key.removesuffix(SUFFIX)
        if own not in self.log.asked:
            self._turn(where, get.text(row, "model_call_id"))
            given = next((inner[field] for field in ("args", "arguments", "input") if inner.get(field) is not None), None)
            turn = self.log.call(ToolCall(own, name, json_text(given)), where)
            turn.thinking += ["".join(self.thought)] if any(self.thought) else []
            self.thought = []
        if row.get("subtype") == "completed":
            self._result(where, own, name, inner.get("result"))

    def _result(self, where: str, own: str, name: str, result: Any) -> None:
        """Add a tool's result, whose only key says whether the call succeeded."""
        outcome, output = next(iter(result.items())) if isinstance(result, dict) and len(result) == 1 else ("success", result)
        if isinstance(output, dict):
            text = next((output[key] for key in ("content", "output", "contents", "stdout") if isinstance(output.get(key), str)), "")
            text = text if text and not output.get("stderr") else json_text(output)
        else:
            text = json_text(output) if output is not None else ""
        self.log.answer(own, text, where, failed=outcome not in ("success", "complete"), name=name, rest={outcome: output})

    def finish(self) -> Draft:
        self._flush("end")
        if any(self.thought):
            self.log.open("end").thinking.append("".join(self.thought))
        return self.log.finish()
