"""Antigravity transcripts: numbered steps, the planner's responses with their calls, and the steps that ran for them.

A step names no call, so it answers the first open call of the response before it; further ones are kept as user text, with a warning.
A checkpoint is a compaction.
"""

from collections.abc import Iterator

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays

NAME = "antigravity-transcript"
PLANNER = "PLANNER_RESPONSE"


def detect(document: Document) -> bool:
    return any(row.get("type") in (PLANNER, "USER_INPUT") and {"step_index", "source"} <= row.keys() for row in head(document))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    log = Log(draft)
    cut: list[str] = []
    for where, row in rows(document):
        kind, text = get.text(row, "type"), get.text(row, "content")
        if "content" in get.items(row, "truncated_fields"):
            cut.append(where)
        if kind == PLANNER:
            log.close()
            log.agent(row.get("content") or None, where, thinking=get.text(row, "thinking"))
            for call in read_calls(row.get("tool_calls")):
                log.call(call, where)
        elif kind == "USER_INPUT":
            log.say("user", row.get("content"), where)
        elif kind == "SYSTEM_MESSAGE":
            log.say("user", row.get("content"), where, name="system")
        elif kind == "CHECKPOINT":
            log.mark("compaction", text)
        elif row.get("source") == "MODEL":
            failed = row.get("status") in ("ERROR", "CANCELED", "CANCELLED")
            log.answer("", row.get("content"), where, failed=failed, name=kind.lower(), rest=get.facts(row, "status", "error"))
        elif text:
            log.mark("note", text, type=kind)
        else:
            draft.unread(kind or "no type", where)
        log.stamp(row.get("created_at"))
    if cut:
        draft.warn(cut[0], f"{len(cut)} steps were already shortened in the file (`truncated_fields`); the first is here")
    yield log.finish()
