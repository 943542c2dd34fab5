"""Cursor's own store (`state.vscdb`): conversations ("composers") and their messages ("bubbles") as JSON in a key-value table.

A conversation lists its bubbles in order; a bubble is a message of the user or the agent and may hold a tool call with its result.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.values import ToolCall

NAME = "cursor-store"
COMPOSER, BUBBLE = "composerData:", "bubbleId:"
USER, AGENT = 1, 2


def detect(document: Document) -> bool:
    return document.kind == "sqlite" and any(key.startswith(COMPOSER) for key in _values(document.root))


def _values(tables: dict[str, Any]) -> dict[str, Any]:
    return {get.text(row, "key"): row.get("value") for row in get.objects(tables, "cursorDiskKV")}


def read(document: Document) -> Iterator[Draft]:
    values = _values(document.root)
    found = {key: get.parsed(value) for key, value in values.items() if key.startswith(COMPOSER)}
    for key, composer in found.items():
        if not isinstance(composer, dict):
            continue
        own = get.text(composer, "composerId") or key.removeprefix(COMPOSER)
        bubbles = _bubbles(values, own, composer)
        if any(bubble.get("type") == AGENT for _, bubble in bubbles):
            yield _read_conversation(Draft(NAME, where=own, orphans="as_user"), composer, bubbles)


def _bubbles(values: dict[str, Any], own: str, composer: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The conversation's bubbles: in the conversation itself (older versions) or under keys of their own."""
    inside = [(get.text(item, "bubbleId"), item) for item in get.objects(composer, "conversation")]
    heads = [get.text(item, "bubbleId") for item in get.objects(composer, "fullConversationHeadersOnly")]
    apart = [(name, get.parsed(values.get(f"{BUBBLE}{own}:{name}"))) for name in heads]
    return inside or [(name, bubble) for name, bubble in apart if isinstance(bubble, dict)]


def _read_conversation(draft: Draft, composer: dict[str, Any], bubbles: list[tuple[str, dict[str, Any]]]) -> Draft:
    log = Log(draft)
    for where, bubble in bubbles:
        if bubble.get("type") == USER:
            log.say("user", get.text(bubble, "text") or json_text(get.obj(bubble, "context")), where)
            continue
        text, thought = get.text(bubble, "text"), get.text(get.obj(bubble, "thinking"), "text")
        if text and log.turn is not None and log.turn.texts:
            log.close()
        if text or thought:
            log.agent(text or None, where, thinking=thought)
        if tool := get.obj(bubble, "toolFormerData"):
            _tool(log, tool, where)
        if log.last:
            log.last.usage = usage_in(bubble.get("tokenCount"), sent="inputTokens", given="outputTokens") or log.last.usage
    draft.meta |= {"session": composer.get("composerId"), "title": composer.get("name"), "mode": composer.get("unifiedMode")}
    draft.model = get.text(get.obj(composer, "modelConfig"), "modelName")
    return log.finish()


def _tool(log: Log, tool: dict[str, Any], where: str) -> None:
    given = next((tool[key] for key in ("rawArgs", "params", "args") if tool.get(key)), None)
    own = get.text(tool, "toolCallId") or where
    log.call(ToolCall(own, get.text(tool, "name", "tool"), json_text(given)), where)
    if tool.get("result") is not None or tool.get("status") in ("completed", "error", "cancelled"):
        output = tool.get("result") if tool.get("result") is not None else tool.get("error")
        log.answer(own, output, where, failed=tool.get("status") in ("error", "cancelled"), rest=get.facts(tool, "status"))
