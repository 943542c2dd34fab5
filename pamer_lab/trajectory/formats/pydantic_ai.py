"""Pydantic AI's message history: requests and responses with parts, as `all_messages_json` and the chat example store it."""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episode
from pamer_lab.trajectory.shared.steps import Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import read_usage, usage_in
from pamer_lab.trajectory.shared.vocabulary import call_of

NAME = "pydantic-ai"
HOLDERS = ("messages", "all_messages", "message_history", "new_messages", "message_list", "history")


def detect(document: Document) -> bool:
    return bool(_messages(first_episode(document)))


def _messages(value: Any) -> list[dict[str, Any]]:
    """The messages of a row: the row itself, a list, or a field that holds either; each may be JSON text."""
    value = parsed(value)
    if isinstance(value, dict):
        if _is_message(value):
            return [value]
        return next((found for key in HOLDERS if (found := _messages(value.get(key)))), [])
    messages = value if isinstance(value, list) else []
    return messages if messages and all(_is_message(item) for item in messages) else []


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") in ("request", "response") and "part_kind" in get.first(value, "parts")


def read(document: Document) -> Iterator[Draft]:
    rows = list(episodes(document))
    if all(len(_messages(value)) == 1 for _, value in rows):  # one message per row, or one per item of a list
        yield attempt(NAME, "", _read_one, [message for _, value in rows for message in _messages(value)], "", {})
        return
    for where, value in rows:
        yield attempt(NAME, where, _read_one, _messages(value), where, value)


def _read_one(messages: list[dict[str, Any]], where: str, about: Any) -> Draft:
    draft = Draft(NAME, where=where, orphans="as_user")
    steps: list[Step] = []
    instructions = ""
    for place, message in get.placed(messages, "messages"):
        if (text := get.text(message, "instructions")) and text != instructions:
            instructions = text
            steps.append(Said("system", text))
        if message["kind"] == "response":
            steps += _response(draft, message, place)
        else:
            steps += [step for part in get.objects(message, "parts") for step in _request(draft, part, place)]
        draft.model = draft.model or get.text(message, "model_name")
    draft.task_id = get.text(about, "id", "run_id", "conversation_id")
    add_steps(draft, steps)
    return draft


def _response(draft: Draft, message: dict[str, Any], where: str) -> list[Step]:
    usage = message.get("usage")
    names = {"sent": "request_tokens", "given": "response_tokens"}
    turn = Turn(where, usage=read_usage(usage) or usage_in(usage, **names))
    results: list[Step] = []
    for part in get.objects(message, "parts"):
        match part.get("part_kind"):
            case "text":
                turn.texts.append(get.text(part, "content"))
            case "thinking":
                turn.thinking.append(get.text(part, "content") or "[thinking without text]")
            case "tool-call" | "builtin-tool-call":
                turn.calls.append(call_of(part))
            case "builtin-tool-return":
                results.append(_result(part, where))
            case kind:
                turn.texts.append(draft.kept_as_json(where, f"part of kind {kind!r}", part))
    return [turn, *results]


def _request(draft: Draft, part: dict[str, Any], where: str) -> list[Step]:
    content = part.get("content")
    match part.get("part_kind"):
        case "system-prompt":
            return [Said("system", json_text(content))]
        case "user-prompt":
            found = content_of(draft, [_medium(item) for item in content] if isinstance(content, list) else content, where)
            return [Said("user", found.text, found.images)]
        case "tool-return":
            return [_result(part, where)]
        case "retry-prompt":
            text = content if isinstance(content, str) else json_text(content)
            if part.get("tool_name") or (part.get("tool_call_id") and part.get("tool_name") is not None):
                return [Result(get.text(part, "tool_call_id"), text, where, error=True, name=get.text(part, "tool_name"))]
            return [Said("user", text)]
        case kind:
            return [Said("user", draft.kept_as_json(where, f"part of kind {kind!r}", part))]


def _medium(item: Any) -> Any:
    """An image or file among the texts of a prompt, as a part in our format; text is returned unchanged."""
    kind = item.get("kind") if isinstance(item, dict) else None
    if kind in ("image-url", "binary") and (kind == "image-url" or get.text(item, "media_type").startswith("image/")):
        return {"type": "image", "url": item.get("url"), "data": item.get("data"), "media_type": item.get("media_type")}
    return {"type": "file", "filename": item.get("url") or item.get("media_type"), "data": item.get("data")} if kind else item


def _result(part: dict[str, Any], where: str) -> Result:
    output = part.get("content")
    text = "" if output is None else json_text(output)
    failed = part.get("outcome") in ("failed", "denied")
    return Result(get.text(part, "tool_call_id"), text, where, error=failed, name=get.text(part, "tool_name"))
