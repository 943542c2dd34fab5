"""One message in whichever dialect a tracing library wrote it -> steps.

Trace exports hold the prompts of many frameworks as JSON text. Supported are OpenAI chat and Responses items, Anthropic parts,
OpenTelemetry's GenAI parts, Gemini contents and LangChain's constructors; a role no dialect knows is a tool's name.
"""

from collections.abc import Sequence
from typing import Any

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_thinking
from pamer_lab.trajectory.shared.gemini_parts import to_steps as gemini_steps
from pamer_lab.trajectory.shared.parts import content_of, output_content
from pamer_lab.trajectory.shared.responses_items import Items
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn
from pamer_lab.trajectory.shared.usage import usage_beside
from pamer_lab.trajectory.shared.vocabulary import CALL_IDS, calls_beside, read_id, result_of, role_of


def parsed(value: Any) -> Any:
    """A text that is a JSON object, list or string as its value; anything else unchanged."""
    found = get.parsed(value) if isinstance(value, str) and value[:1] in ("{", "[", '"') else None
    return value if found is None else found


def messages_of(value: Any) -> list[dict[str, Any]]:
    """The messages of a prompt or an answer, however it is wrapped."""
    value = parsed(value)
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict) and ({"role", "type", "kwargs"} & item.keys())]
    if not isinstance(value, dict):
        return []
    for key in ("messages", "contents", "output", "input"):
        if isinstance(value.get(key), list):
            return messages_of(value[key])
    if isinstance(value.get("candidates"), list):
        return [item["content"] for item in get.objects(value, "candidates") if isinstance(item.get("content"), dict)]
    if isinstance(value.get("contents"), str):
        return [{"role": "user", "content": value["contents"]}]
    if isinstance(value.get("prompt"), str):
        system = [{"role": "system", "content": value["system"]}] if isinstance(value.get("system"), str) else []
        return [*system, {"role": "user", "content": value["prompt"]}]
    return [value] if {"role", "kwargs"} & value.keys() else []


def to_steps(draft: Draft, messages: list[dict[str, Any]], where: str) -> list[Step]:
    """The steps of messages, each in its own dialect."""
    steps: list[Step] = []
    for place, message in get.placed(messages, where):
        steps += message_steps(draft, message, place)
    return steps


def message_steps(draft: Draft, message: dict[str, Any], where: str) -> list[Step]:
    """The steps of one message."""
    if isinstance(message.get("kwargs"), dict) and isinstance(message.get("id"), list):
        kind = get.as_text(message["id"][-1]).removesuffix("Message").lower() if message["id"] else ""
        message = {"role": kind, **message["kwargs"]}
    role = get.text(message, "role")
    role = role_of(role) or role
    if role == "user" and (given := get.obj(message, "tool_result")) and not message.get("content"):
        call_id, output, failed = result_of(given)
        return [Result(call_id, output_content(draft, output, where).text, where, error=failed)]
    parts = message.get("parts")
    if isinstance(parts, list):
        if not any(isinstance(part, dict) and "type" in part for part in parts):
            return gemini_steps(draft, role, parts, where)
        message = {**message, "content": parts}
    if not role:
        items = Items(draft)
        items.add(message, where)
        return items.steps
    content = content_of(draft, message.get("content", message.get("text")), where)
    results: list[Step] = [Result(call_id, result.text, where, result.images, failed) for call_id, result, failed in content.results]
    if role == "assistant":
        calls = content.calls + read_calls(calls_beside(message))
        return [Turn(where, content.texts, calls, content.thinking, content.images), *results]
    if role in ("system", "user"):
        said: list[Step] = [Said("system" if role == "system" else "user", content.text, content.images)]
        return results + (said if content.texts or not results else [])
    name = "" if role in ("tool", "call") else role
    if results and not content.texts:
        return results
    return [Result(read_id(message, *CALL_IDS), content.text, where, content.images, name=get.text(message, "name") or name)]


def steps_of(draft: Draft, messages: Sequence[dict[str, Any]], where: str) -> list[Step]:
    """The steps of messages in any dialect; items of the Responses API that follow each other make one turn."""
    steps: list[Step] = []
    items: Items | None = None
    for place, message in get.placed(messages, where):
        if not isinstance(message, dict):
            draft.warn(place, f"is {type(message).__name__}, not a message; kept as a note")
            steps.append(Mark("note", json_text(message)))
            continue
        if is_item(message):
            if items is None:
                items = Items(draft)
                items.steps = steps
            items.add(message, place)
            continue
        items = None
        steps += _of_message(draft, message, place, steps)
    return steps


def is_item(message: dict[str, Any]) -> bool:
    """Whether an object is an item of the Responses API."""
    kind = message.get("type")
    return isinstance(kind, str) and (kind == "message" or ("role" not in message and (kind == "reasoning" or "call" in kind)))


def _of_message(draft: Draft, message: dict[str, Any], where: str, before: list[Step]) -> list[Step]:
    given = message.get("role")
    role = role_of(given)
    if role == "call" and isinstance(message.get("content"), str | list):
        text = content_of(draft, message["content"], where).text
        if before and isinstance(before[-1], Turn):
            before[-1].texts.append(text)
            return []
        return [Turn(where, [text])]
    if given is not None and not role:
        draft.warn(where, f"has the unknown role {given!r}; kept as a note")
        return [Mark("note", content_of(draft, message.get("content"), where).text or json_text(message), {"role": given})]
    found = message_steps(draft, message, where)
    usage = usage_beside(message)
    for step in found:
        if isinstance(step, Turn) and step.usage is None:
            step.usage = usage
        if isinstance(step, Turn) and not step.thinking:
            step.thinking = list(filter(None, [read_thinking(message)]))
    return [_named(step, message) for step in found]


def _named(step: Step, message: dict[str, Any]) -> Step:
    """The step, as a failed result if its message names the failure outside the content."""
    if isinstance(step, Result) and not step.error and (message.get("is_error") is True or message.get("isError") is True):
        return Result(step.call_id, step.text, step.where, step.images, True, step.name)
    return step
