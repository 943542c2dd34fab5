"""Antigravity transcripts and language-server trajectories, also Windsurf's (`CORTEX_STEP_TYPE_…`): planner responses with their
calls, and the steps that carried them out.

A step in a transcript names no call, so it answers the first open call of the response before it; any further steps are kept
as user text, with a warning. A checkpoint is a compaction.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.counts import whole_number
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import Row, first_value, head, rows, warn_strays
from pamer_lab.trajectory.shared.usage import usage_in

NAME = "antigravity-transcript"
PLANNER = "PLANNER_RESPONSE"
CORTEX = "CORTEX_STEP_TYPE_"
SILENT = ("CONVERSATION_HISTORY", "CHECKPOINT", "FINISH", "DUMMY", "TASK_BOUNDARY")
OUTPUTS = ("content", "rawContent", "output", "result", "response", "text", "summary", "error")


def detect(document: Document) -> bool:
    if any(get.text(row, "type").startswith(CORTEX) for row in _cortex(document)):
        return True
    return any(row.get("type") in (PLANNER, "USER_INPUT") and {"step_index", "source"} <= row.keys() for row in head(document))


def _cortex(document: Document) -> list[dict[str, Any]]:
    """The steps of a trajectory, whichever answer of the server they were saved from."""
    root = first_value(document)
    for holder in (root, get.obj(root, "trajectory"), get.obj(root, "result"), get.obj(get.obj(root, "cascade"), "trajectory")):
        if steps := get.objects(holder, "steps"):
            return steps
    return head(document, 10**6) if get.text(next(iter(head(document, 1)), {}), "type").startswith(CORTEX) else []


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    if steps := [step for step in _cortex(document) if get.text(step, "type").startswith(CORTEX)]:
        found: list[Row] = [(where, _plain(step)) for where, step in get.placed(steps, "steps")]
    else:
        warn_strays(draft, document)
        found = rows(document)
    log = Log(draft)
    cut: list[str] = []
    for where, row in found:
        kind, text = get.text(row, "type"), get.text(row, "content")
        if "content" in get.items(row, "truncated_fields"):
            cut.append(where)
        if kind == PLANNER:
            log.close()
            log.agent(row.get("content") or None, where, thinking=get.text(row, "thinking")).usage = row.get("usage")
            for call in read_calls(row.get("tool_calls")):
                log.call(call, where)
            draft.model = draft.model or get.text(row, "model")
        elif kind == "USER_INPUT":
            log.say("user", row.get("content"), where)
        elif kind == "SYSTEM_MESSAGE":
            log.say("user", row.get("content"), where, name="system")
        elif kind == "CHECKPOINT" and (text or not steps):
            log.mark("compaction", text)
        elif row.get("source") == "MODEL":
            failed = row.get("status") in ("ERROR", "CANCELED", "CANCELLED")
            own = get.text(row, "tool_call_id")
            log.answer(own, row.get("content"), where, failed=failed, name=kind.lower(), rest=get.facts(row, "status", "error"))
        elif text:
            log.mark("note", text, type=kind)
        else:
            draft.passed(kind or "no type", where, SILENT if steps else ())
        log.stamp(row.get("created_at"))
    if cut:
        draft.warn(cut[0], f"{len(cut)} steps were already shortened in the file (`truncated_fields`); the first is here")
    yield log.finish()


def _plain(step: dict[str, Any]) -> dict[str, Any]:
    """A trajectory step converted to a transcript step; a tool's step has its fields under a separate key."""
    kind, facts = step["type"].removeprefix(CORTEX), get.obj(step, "metadata")
    body = next((value for key, value in step.items() if isinstance(value, dict) and key not in ("metadata", "error")), {})
    row = {"type": kind, "created_at": facts.get("createdAt"), "status": get.text(step, "status").rpartition("_")[2]}
    if kind == PLANNER:
        spent = {key: whole_number(value) if isinstance(value, str) else value for key, value in get.obj(facts, "modelUsage").items()}
        usage = usage_in(spent, sent="inputTokens cacheReadTokens cacheWriteTokens", given="outputTokens", cached="cacheReadTokens")
        text = get.text(body, "modifiedResponse", "response")
        return (
            row
            | {"content": text, **get.facts(body, "thinking"), "tool_calls": body.get("toolCalls"), "usage": usage}
            | ({"model": get.text(facts, "generatorModel")})
        )
    if kind == "USER_INPUT":
        return row | {"content": get.text(body, "userResponse") or "\n".join(get.text(item, "text") for item in get.objects(body, "items"))}
    call = get.obj(facts, "toolCall")
    if call or get.text(facts, "source").endswith("MODEL"):
        texts = [get.text(body, *OUTPUTS), get.text(get.obj(body, "combinedOutput"), "full"), get.text(get.obj(step, "error"), "message")]
        content = next(filter(None, texts), "") or (json_text(body) if body else "")
        return row | {"source": "MODEL", "content": content, "tool_call_id": get.text(call, "id")}
    fault = get.obj(body, "error")
    return row | {
        "content": get.text(body, *OUTPUTS, "userIntent", "conversationSummary") or get.text(fault, "userErrorMessage", "shortError")
    }
