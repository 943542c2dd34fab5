"""Factory Droid sessions: a `session_start` line, then Anthropic-shaped messages, lists of todos and compactions, one per line."""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, keep_none
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "droid-session"
SUMMARIES = ("compaction_state", "compaction", "summary")


def detect(document: Document) -> bool:
    first = head(document, 3)
    flat = any(row.get("type") == "message" and "message" not in row for row in head(document))
    return not flat and (
        any(row.get("type") == "session_start" for row in first) or any(_has_anthropic_parts(row) for row in head(document))
    )


def _has_anthropic_parts(row: dict[str, Any]) -> bool:
    """Whether a message has Anthropic's parts; pi's log has the same envelope with different parts."""
    parts = get.objects(get.obj(row, "message"), "content") if row.get("type") == "message" else []
    return any(part.get("type") in ("tool_use", "tool_result") for part in parts)


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    log = Log(draft)
    for where, row in rows(document):
        body, kind = get.obj(row, "message"), get.text(row, "type")
        if kind == "message" and body.get("role") == "assistant":
            log.close()
            turn = log.agent(body.get("content"), where)
            turn.usage = read_usage(body.get("usage") or row.get("usage"))
            draft.model = draft.model or get.text(body, "model") or get.text(row, "model")
        elif kind == "message" and body:
            log.say("system" if body.get("role") == "system" else "user", body.get("content"), where)
        elif kind == "session_start":
            draft.meta |= {"session": row.get("id"), "title": row.get("title"), "cwd": row.get("cwd"), "version": row.get("version")}
            draft.model = get.text(row, "model")
        elif kind in SUMMARIES:
            summary = get.text(row, "summaryText", "summary", "text") or get.text(get.obj(row, "summary"), "text")
            log.close()
            log.steps.append(Mark("compaction", summary, {"tokens_before": get.count(row, "tokensBefore")}, keep_none, None))
        elif kind == "todo_state":
            log.mark("note", json_text(row.get("todos")), event=kind)
        elif kind == "session_end":
            draft.meta["status"] = row.get("reason")
        else:
            draft.unread(kind or "no type", where)
        log.stamp(row.get("timestamp"))
    yield log.finish()
