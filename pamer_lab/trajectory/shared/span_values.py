"""Values that spans hold as prompt or answer -> messages, and numbered attributes -> lists.

A prompt may be text, a message, a list (of lists) of them, or a request that holds them; an answer a text, a message, choices, candidates,
generations or items. Invariant: a value that holds no messages gives an empty list or one message with the value as its text.
"""

from typing import Any

from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed

MESSAGE = {"role", "type", "kwargs", "parts", "tool_calls"}
HOLD_PROMPT = ("messages", "contents", "input", "inputs", "prompt", "prompts", "history", "request", "body", "chat_history")
HOLD_ANSWER = (
    "choices",
    "candidates",
    "generations",
    "message",
    "output",
    "messages",
    "content",
    "response",
    "outputs",
    "result",
    "answer",
)

SEVERAL = ("choices", "candidates", "generations")
"""Fields that list the alternatives of an answer, the first of which was used."""


def branch(facts: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """`prefix.0.a.b`, `prefix.1.a` … as a list of nested objects; also a list (or its JSON text) under the prefix itself."""
    given = parsed(facts.get(prefix))
    if isinstance(given, list):
        return [item for item in given if isinstance(item, dict)]
    root: dict[str, Any] = {}
    for key, value in facts.items():
        if not key.startswith(f"{prefix}."):
            continue
        node = root
        *path, last = key[len(prefix) + 1 :].split(".")
        for step in path[:20]:
            inner = node.setdefault(step, {})
            node = inner if isinstance(inner, dict) else node.setdefault(f"{step}.", {})
        node[last] = value
    found = _listed(root)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _listed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    inner = {key: _listed(value) for key, value in node.items()}
    if inner and all(key.isascii() and key.isdigit() and len(key) < 9 for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def prompt_of(value: Any, depth: int = 0) -> list[dict[str, Any]]:
    """The messages of a prompt, however it is wrapped."""
    value = parsed(value)
    if depth > 8 or value is None:
        return []
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value else []
    if isinstance(value, list):
        if value and isinstance(value[0], list):
            return prompt_of(value[0], depth + 1)
        return [message for item in value if (message := _message(item))]
    if not isinstance(value, dict):
        return []
    system = _system(value)
    if isinstance(value.get("role"), str) or ("kwargs" in value and not set(HOLD_PROMPT) & value.keys()):
        return [_message(value) or {}]
    for key in HOLD_PROMPT:
        inner = parsed(value.get(key))
        if isinstance(inner, list | dict) and inner and (found := prompt_of(inner, depth + 1)):
            return [*system, *found]
        if isinstance(inner, str) and inner:
            return [*system, {"role": "user", "content": inner}]
    return system


def _system(value: dict[str, Any]) -> list[dict[str, Any]]:
    for key in ("system", "instructions", "system_prompt", "systemInstruction", "system_instruction"):
        found = parsed(value.get(key))
        if isinstance(found, dict) and isinstance(found.get("parts"), list):
            return [{"role": "system", "parts": found["parts"]}]
        if isinstance(found, str | list) and found:
            return [{"role": "system", "content": found}]
    return []


def _message(item: Any) -> dict[str, Any] | None:
    item = parsed(item)
    if isinstance(item, str):
        return {"role": "user", "content": item} if item else None
    if not isinstance(item, dict):
        return None
    inner = item.get("message")
    if isinstance(inner, dict) and "role" not in item and MESSAGE & inner.keys():
        item = inner if "content" in inner or "kwargs" in inner or "parts" in inner else {**inner, "content": item.get("text")}
    if (
        isinstance(item.get("data"), dict) and isinstance(item.get("type"), str) and "content" in item["data"]
    ):  # LangChain's message_to_dict
        item = {"role": item["type"], **item["data"]}
    if "role" not in item and isinstance(item.get("type"), str) and item["type"].lower() in ("human", "ai", "system", "tool"):
        item = {**{key: value for key, value in item.items() if key != "type"}, "role": item["type"]}
    if not MESSAGE & item.keys():
        return None
    content = item.get("content")
    return item if type(content) is not str or (found := parts_in(content)) is content else {**item, "content": found}


PARTS = {"type", "text", "toolUse", "toolResult"}


def parts_in(value: Any) -> Any:
    """Content that is the JSON text of parts as its parts; any other text stays text."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    found = get.parsed(value)
    if isinstance(found, dict) and ({"toolUse", "toolResult"} & found.keys()):
        return [found]
    return found if isinstance(found, list) and found and all(isinstance(part, dict) and PARTS & part.keys() for part in found) else value


def answers_of(value: Any, depth: int = 0) -> list[dict[str, Any]]:
    """The messages of an answer; plain text and values of no known shape are the assistant's text."""
    value = parsed(value)
    if depth > 8 or value in (None, "", [], {}):
        return []
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}]
    if isinstance(value, list):
        return _of_list(value, depth)
    if not isinstance(value, dict):
        return [{"role": "assistant", "content": json_text(value)}]
    if (message := _message(value)) and not any(isinstance(value.get(key), list) for key in SEVERAL):
        if isinstance(value.get("content"), list) and value.get("type") == "message" and "stop_reason" in value:
            return [{"role": "assistant", "content": value["content"]}]
        return [message if "type" in message and "role" not in message else {"role": "assistant", **message}]
    return _of_holder(value, depth)


def _of_list(value: list[Any], depth: int) -> list[dict[str, Any]]:
    if isinstance(value[0], list):
        return answers_of(value[0], depth + 1)
    if all(
        isinstance(item, dict) and "type" in item and not {"role", "message"} & item.keys() and {"text", "input"} & item.keys()
        for item in value
    ):
        return [{"role": "assistant", "content": value}]
    messages = [_assistants(found) for item in value if (found := _message(item))]
    return messages if len(messages) == len(value) else [answer for item in value[:1] for answer in answers_of(item, depth + 1)]


def _assistants(message: dict[str, Any]) -> dict[str, Any]:
    return message if {"role", "type", "kwargs"} & message.keys() else {"role": "assistant", **message}


def _of_holder(value: dict[str, Any], depth: int) -> list[dict[str, Any]]:
    calls = next((parsed(value[key]) for key in ("toolCalls", "tool_calls", "combined_tool_calls") if value.get(key)), None)
    if calls or (isinstance(value.get("text"), str) and "message" not in value):
        said = {"role": "assistant", "content": value.get("text") or value.get("content") or value.get("combined_chunk_content")}
        thought = value.get("reasoningText") or value.get("reasoning")
        said |= {"reasoning": thought} if isinstance(thought, str) and thought else {}
        return [said | ({"tool_calls": calls} if isinstance(calls, list) else {})]
    for key in HOLD_ANSWER:
        inner = value.get(key)
        if key in ("choices", "candidates") and isinstance(inner, list) and inner and isinstance(inner[0], dict):
            inner = inner[0].get("message", inner[0].get("content", inner[0].get("text", inner[0].get("delta"))))
        if found := answers_of(inner, depth + 1):
            return found
    return [{"role": "assistant", "content": json_text(value)}] if depth == 0 else []
