"""OpenClaw telemetry: what its hooks report of each session (starts with the history so far, tools, messages in and out).

A session's longest history is its trace, followed by the prompts that came after it. Sessions without a history (side agents) report only
their tools: each becomes a `subagent` event. Outgoing messages that no history contains become notes.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import Row, head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Said, Turn
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.shared.vocabulary import calls_beside, role_of

NAME = "openclaw-telemetry"
HISTORIES = ("agent.start", "agent.end", "llm.input", "llm.output")


def detect(document: Document) -> bool:
    return any(row.get("type") in ("agent.start", "agent.end") and "sessionKey" in row for row in head(document))


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    best: dict[str, int] = {}
    """Session -> the line of its longest history."""
    for number, (_, row) in enumerate(found):
        key = get.text(row, "sessionKey")
        before = len(get.items(found[best[key]][1], "messages")) if key in best else 0
        if row.get("type") in HISTORIES and len(get.items(row, "messages")) > before:
            best[key] = number
    for place, (key, number) in enumerate(best.items()):
        draft = Draft(NAME, where=key if len(best) > 1 else "", orphans="as_user")
        if place == 0:
            warn_strays(draft, document)
        yield _read_session(
            draft, found, key, number, [row for row in found if get.text(row[1], "sessionKey") not in best] if not place else []
        )


def _read_session(draft: Draft, found: list[Row], key: str, number: int, others: list[Row]) -> Draft:
    log = Log(draft)
    for where, item in get.placed(found[number][1]["messages"], f"{found[number][0]} messages"):
        if isinstance(item, dict):
            _message(log, item, where)
            log.stamp(item.get("timestamp"))
    for where, row in found[number:]:
        prompt = get.text(row, "prompt")
        if get.text(row, "sessionKey") == key and row.get("type") == "agent.start" and prompt and not _said(log, prompt):
            log.say("user", prompt, where)
    for where, row in others:
        _other(log, row, where)
    draft.meta["session"] = key
    return log.finish()


def _said(log: Log, text: str) -> bool:
    texts = [said for step in log.steps for said in (step.texts if isinstance(step, Turn) else [step.text])]
    return any(text in said for said in texts)


def _message(log: Log, item: dict[str, Any], where: str) -> None:
    if item.get("role") == "custom":
        log.close()
        log.steps.append(Said("user", content_of(log.draft, item.get("content"), where).text, name=get.text(item, "customType")))
        return
    match role_of(item.get("role")):
        case "assistant":
            log.close()
            turn = log.agent(item.get("content"), where)
            for call in read_calls(calls_beside(item)):
                log.call(call, where)
            usage = get.obj(item, "usage")
            cost = get.amount(get.obj(usage, "cost"), "total")
            turn.usage = usage_in(usage, sent="input cacheRead cacheWrite", given="output", cached="cacheRead", cost=cost or None)
            log.draft.model = log.draft.model or get.text(item, "model")
        case "tool":
            name = get.text(item, "toolName")
            failed = item.get("isError") is True
            log.answer(get.text(item, "toolCallId"), item.get("content"), where, failed=failed, name=name, rest=item.get("details"))
        case "system":
            log.say("system", item.get("content"), where)
        case _:
            log.say("user", item.get("content"), where)


def _other(log: Log, row: dict[str, Any], where: str) -> None:
    """A line that belongs to no session with a history: a side agent's, or a message of a channel."""
    kind, key = get.text(row, "type"), get.text(row, "sessionKey")
    if key and kind == "agent.start":
        log.side(key, get.text(row, "prompt") if "messages" not in row else "", session=key)
    elif key and kind in ("tool.start", "tool.end"):
        params = json_text(row.get("params")) if kind == "tool.start" else json_text(get.facts(row, "success", "error", "result"))
        log.side(key, f"{kind} {get.text(row, 'toolName')} {params}", session=key)
    elif (text := get.text(row, "content")) and not key:
        if kind == "message.out" and not _said(log, text):
            log.mark("note", text, event=kind)
    else:
        log.draft.unread(kind or "no type", where)
