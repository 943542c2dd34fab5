"""Grok Build chat histories: one message per line whose `type` is its role, reasoning on lines of its own.

A tool that ran on the server (`backend_tool_call`) has no recorded result and is kept as a note.
"""

from collections.abc import Iterator

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.shared.vocabulary import failure

NAME = "grok-build"


def detect(document: Document) -> bool:
    first = head(document)
    said = [row for row in first if row.get("type") == "assistant" and "content" in row and not {"message", "role", "uuid"} & row.keys()]
    marks = any("model_id" in row or "tool_calls" in row for row in said)
    return marks or (bool(said) and any(row.get("type") == "tool_result" and "tool_call_id" in row for row in first))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    log = Log(draft)
    thoughts: list[str] = []
    for where, row in rows(document):
        kind = row.get("type")
        if kind == "reasoning":
            for key in ("summary", "content"):
                content = content_of(draft, row.get(key), where)
                thoughts += content.texts + content.thinking
        elif kind == "assistant":
            log.close()
            turn = log.agent(row.get("content") or None, where)
            turn.thinking, thoughts = [*thoughts, *turn.thinking], []
            turn.usage = read_usage(row.get("usage"))
            for call in read_calls(row.get("tool_calls")):
                log.call(call, where)
            draft.model = draft.model or get.text(row, "model_id", "model")
        elif kind == "tool_result":
            log.answer(get.text(row, "tool_call_id", "id"), row.get("content"), where, failed=failure(row), rest=get.facts(row, "status"))
        elif kind in ("user", "system"):
            if thoughts and log.last:
                log.last.thinking, thoughts = [*log.last.thinking, *thoughts], []
            log.say("system" if kind == "system" else "user", row.get("content"), where, name=get.text(row, "synthetic_reason"))
        elif kind == "backend_tool_call":
            log.mark("note", json_text(row.get("kind")), type=kind)
        elif text := get.text(row, "content", "text", "message"):
            log.mark("note", text, type=kind)
        else:
            draft.unread(str(kind), where)
    if thoughts and log.last:
        log.last.thinking += thoughts
    yield log.finish()
