"""Plain OpenAI chat: a list of messages, or an object with `messages`; JSON or one conversation per line.

Also serves as the reader of message lists for formats that only wrap them (`add_messages`).
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.parts import Content, read_content, read_openai_calls, read_tools, read_usage
from pamer_lab.trajectory.values import ToolCall

NAME = "openai-chat"
ROLES = {"system", "developer", "user", "assistant", "tool", "function"}


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl"):
        return False
    first = document.root
    if document.kind == "jsonl" and _is_message(first):
        return all(_is_message(record.value) for record in document.records)
    return _conversation(first) is not None


def read(document: Document) -> Iterator[Draft]:
    if document.kind == "jsonl" and _is_message(document.root):
        draft = Draft(NAME)
        add_messages(draft, [record.value for record in document.records])
        yield draft
        return
    for record in document.records:
        value = record.value
        many = value if isinstance(value, list) and value and not _is_message(value[0]) else None
        for number, item in enumerate(many if many is not None else [value]):
            where = f"[{number}]" if many is not None else record.where
            yield _read_one(item, where)


def _read_one(value: Any, where: str) -> Draft:
    messages = _conversation(value)
    if messages is None:
        raise FormatError("is not a conversation like the ones before it", where=where)
    draft = Draft(NAME, where=where)
    if isinstance(value, dict):
        draft.tools = read_tools(value.get("tools") or value.get("functions"))
        draft.model = str(value.get("model") or "")
        draft.usage = read_usage(value.get("usage"))
        draft.question_id = str(value.get("query_id") or value.get("question_id") or "")
        draft.task_id = str(value.get("task_id") or value.get("id") or value.get("instance_id") or "")
        if isinstance(value.get("reward"), int | float):
            draft.reward = float(value["reward"])
    add_messages(draft, messages)
    return draft


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict) and value.get("role") in ROLES and ("content" in value or "tool_calls" in value or "function_call" in value)
    )


def _conversation(value: Any) -> list[Any] | None:
    """The message list of a conversation, or None where the value is not one."""
    if isinstance(value, dict):
        value = value.get("messages")
        return value if isinstance(value, list) and (not value or _is_message(value[0])) else None
    if isinstance(value, list) and value:
        if _is_message(value[0]):
            return value
        if isinstance(value[0], dict) and _conversation(value[0]) is not None:
            return value
    return None


def add_messages(draft: Draft, messages: list[Any], *, place: str = "messages") -> None:
    """Append OpenAI-shaped messages (Anthropic parts inside them are understood too)."""
    for number, item in enumerate(messages):
        where = f"{place}[{number}]"
        if not isinstance(item, dict):
            raise FormatError(f"is {type(item).__name__}, not a message", where=f"{draft.where} {where}".strip())
        try:
            add_message(draft, item, where)
        except FormatError as error:
            raise error.at(where=f"{draft.where} {where}".strip()) from error


def add_message(draft: Draft, item: dict[str, Any], where: str) -> None:
    """Append one OpenAI-shaped message."""
    content = read_content(item.get("content"), where=f"{where}.content")
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text")
    match item.get("role"):
        case "system" | "developer":
            draft.system(content.text)
        case "user":
            _add_user(draft, content, item, where)
        case "assistant":
            thinking = "\n".join(filter(None, [_thinking(item), content.thought]))
            calls = content.calls + read_openai_calls(item.get("tool_calls")) + _legacy_call(item)
            draft.assistant(content.text, calls, thinking=thinking, images=content.images, usage=read_usage(item.get("usage")), where=where)
        case "tool" | "function":
            name = str(item.get("name") or "")
            call_id = str(item.get("tool_call_id") or "")
            if content.results and not content.texts:
                call_id, content, _ = content.results[0]
            draft.tool(call_id, content.text, name=name, images=content.images, where=where)
        case other:
            raise FormatError(f"has the role {other!r}; known: {', '.join(sorted(ROLES))}", where=where)


def _add_user(draft: Draft, content: Content, item: dict[str, Any], where: str) -> None:
    """A user message; Anthropic puts tool results into it, and they come first."""
    for call_id, result, failed in content.results:
        draft.tool(call_id, result.text, images=result.images, error=failed, where=where)
    if content.texts or not content.results:
        draft.user(content.text, images=content.images, name=str(item.get("name") or ""))


def _thinking(item: dict[str, Any]) -> str:
    thought = item.get("reasoning_content") or item.get("reasoning")
    return thought if isinstance(thought, str) else ""


def _legacy_call(item: dict[str, Any]) -> list[ToolCall]:
    call = item.get("function_call")
    return read_openai_calls([call]) if isinstance(call, dict) else []
