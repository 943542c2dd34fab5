"""Qwen Code sessions: Claude Code's envelope (`uuid`, `parentUuid`, `sessionId`) around Gemini contents.

Lines with the same `uuid` form one turn. A rewind is a `context_edit` event, and the abandoned messages are kept; a compression is a
compaction whose text is the history that replaced the old one. Telemetry lines are counted.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.chain import in_causal_order, read_sessions
from pamer_lab.trajectory.shared.gemini_parts import to_steps
from pamer_lab.trajectory.shared.rows import Row, head
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps, keep_none, rewound, stamp_steps
from pamer_lab.trajectory.shared.usage import usage_in

NAME = "qwen-code"
FACTS = (("sessionId", "session"), ("cwd", "cwd"), ("gitBranch", "branch"), ("version", "version"))
TOLD = ("slash_command", "at_command", "notification", "session_notes", "goal_state", "cron")
"""Kinds of system lines whose payload says something about the conversation."""


def detect(document: Document) -> bool:
    found = [row for row in head(document) if "uuid" in row and "sessionId" in row]
    return any(isinstance(get.obj(row, "message").get("parts"), list) for row in found)


def read(document: Document) -> Iterator[Draft]:
    return read_sessions(document, NAME, _read_session)


def _read_session(draft: Draft, group: list[Row]) -> Draft:
    steps: list[Step] = []
    turns: dict[str, Turn] = {}
    for where, row in in_causal_order(draft, group):
        for key, name in FACTS:
            draft.meta[name] = draft.meta.get(name) or row.get(key)
        body, before = row.get("message"), len(steps)
        if row.get("type") == "system" or not isinstance(body, dict):
            _add_system(draft, steps, row, where)
        elif row.get("type") == "assistant":
            _add_turn(draft, steps, turns, row, where)
        else:
            failed = get.text(get.obj(row, "toolCallResult"), "status") in ("error", "cancelled")
            for step in to_steps(draft, "user", body.get("parts") or [], where):
                steps.append(_failed(step) if failed and isinstance(step, Result) else step)
        stamp_steps(steps, before, get.as_time(row.get("timestamp")))
    add_steps(draft, steps)
    return draft


def _failed(result: Result) -> Result:
    return Result(result.call_id, result.text, result.where, result.images, True, result.name)


def _add_turn(draft: Draft, steps: list[Step], turns: dict[str, Turn], row: dict[str, Any], where: str) -> None:
    draft.model = get.text(row, "model") or draft.model
    names = {"sent": "promptTokenCount", "given": "candidatesTokenCount thoughtsTokenCount", "cached": "cachedContentTokenCount"}
    usage = usage_in(row.get("usageMetadata"), **names)
    new = to_steps(draft, "model", row["message"].get("parts") or [], where, usage=usage)
    key, turn = get.text(row, "uuid"), new[0]
    open_turn = turns.get(key)
    if isinstance(turn, Turn) and open_turn is not None and steps and steps[-1] is open_turn:
        open_turn.merge(turn)
        open_turn.usage = usage or open_turn.usage
        steps += new[1:]
        return
    if isinstance(turn, Turn) and key:
        turns[key] = turn
    steps += new


def _add_system(draft: Draft, steps: list[Step], row: dict[str, Any], where: str) -> None:
    kind, payload = get.text(row, "subtype"), get.obj(row, "systemPayload")
    if kind == "rewind":
        steps.append(rewound(draft, where, get.text(payload, "targetUuid")))
    elif kind == "chat_compression":
        info = get.obj(payload, "info")
        facts = {"tokens_before": get.count(info, "originalTokenCount"), "tokens_after": get.count(info, "newTokenCount")}
        history = get.objects(payload, "compressedHistory")
        said = [step for item in history for step in to_steps(draft, get.text(item, "role"), item.get("parts") or [], where)]
        text = "\n\n".join("\n".join(step.texts) if isinstance(step, Turn) else step.text for step in said if isinstance(step, Turn | Said))
        steps.append(Mark("compaction", text, facts, keep_none if text else None, None))
    elif kind == "custom_title":
        draft.meta["title"] = payload.get("customTitle")
    elif kind in TOLD and payload:
        steps.append(Mark("note", json_text(payload), {"system": kind}))
    else:
        draft.unread(f"{get.text(row, 'type')}/{kind}" if kind else get.text(row, "type") or "no type", where)
