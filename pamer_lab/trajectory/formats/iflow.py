"""iFlow CLI sessions: Claude Code's envelope, written while an answer grows, with Gemini's results inside the parts.

Every line names the prompt as its parent, so lines are read in file order. An agent line repeats the calls of the lines before
it: lines between two messages or results form one turn, and each call counts once.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.chain import read_sessions
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import Row, head
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "iflow-session"


def detect(document: Document) -> bool:
    found = [row for row in head(document) if "parentUuid" in row and "sessionId" in row]
    return any(get.text(get.obj(row, "message"), "id").startswith("response-") or _has_parts(row) for row in found)


def _has_parts(row: dict[str, Any]) -> bool:
    return any("responseParts" in get.obj(part, "content") for part in get.objects(get.obj(row, "message"), "content"))


def read(document: Document) -> Iterator[Draft]:
    return read_sessions(document, NAME, _read_session)


def _read_session(draft: Draft, group: list[Row]) -> Draft:
    log = Log(draft)
    for where, row in group:
        body = get.obj(row, "message")
        if row.get("type") == "assistant" and body:
            given = body.get("content")
            new = [part for part in given if not _repeats(log, part)] if isinstance(given, list) else given
            if new or not given:
                turn = log.agent(new or None, where)
                turn.usage = read_usage(body.get("usage")) or turn.usage
            draft.model = draft.model or get.text(body, "model")
        elif row.get("type") == "user" and body:
            log.say("user", body.get("content"), where)
        else:
            draft.unread(str(row.get("type")), where)
        log.stamp(row.get("timestamp"))
        for key, name in (("sessionId", "session"), ("cwd", "cwd"), ("version", "version")):
            draft.meta[name] = draft.meta.get(name) or row.get(key)
    return log.finish()


def _repeats(log: Log, part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_use" and get.text(part, "id") in log.asked
