"""LangGraph thread states and LangChain message lists: roles human, ai, tool and system.

Call ids are unique only within their thread, sometimes only within their message, which is all the trace needs. System
messages in the middle of a run stay where they are. Reasoning is kept apart. A tool's `artifact` was never sent to the model
and is not read.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.fields import read_openai_calls, read_usage
from pamer_lab.trajectory.formats.rows import number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.parts import Content, read_content
from pamer_lab.trajectory.values import Usage

NAME = "langgraph-thread-state"
TYPES = (
    "human",
    "ai",
    "tool",
    "system",
    "function",
    "chat",
    "remove",
    "HumanMessage",
    "AIMessage",
    "AIMessageChunk",
    "ToolMessage",
    "SystemMessage",
)
HOLDERS = ("values", "channel_values", "state", "checkpoint")


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl"):
        return False
    root = document.root
    return _messages(root) is not None or (type(root) is list and bool(root) and type(root[0]) is dict and _messages(root[0]) is not None)


def _plain(item: Any) -> dict[str, Any] | None:
    """A message in the plain shape, whichever of LangChain's three it was written in; None where it is no message."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("data"), dict) and item.get("type") in TYPES:
        return {**item["data"], "type": item["type"]}
    if isinstance(item.get("kwargs"), dict) and isinstance(item.get("id"), list) and item["id"]:
        return {**item["kwargs"], "type": text_of(item["id"][-1])}
    return item if item.get("type") in TYPES and ("content" in item or item["type"] == "remove") else None


def _messages(value: Any) -> list[Any] | None:
    """The message list of a state, or None where there is none."""
    for _ in range(3):
        if isinstance(value, list):
            return value if value and _plain(value[0]) is not None else None
        if not isinstance(value, dict):
            return None
        value = value.get("messages") or next((value[key] for key in HOLDERS if isinstance(value.get(key), dict)), None)
    return None


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    if document.kind == "json" and _messages(root) is not None:
        yield _read_one(Draft(NAME), root)
        return
    found = [(where, value) for where, value in rows(document) if _messages(value) is not None]
    threads = {_thread(value) for _, value in found}
    if document.kind == "json" and len(threads) == 1 and found and "checkpoint" in found[0][1]:
        # States of one thread repeat each other; the longest holds them all.
        where, state = max(found, key=lambda item: len(_messages(item[1]) or []))
        draft = Draft(NAME)
        draft.warn(where, f"the longest of {len(found)} states of one thread was read")
        yield _read_one(draft, state)
        return
    for where, value in found:
        yield _read_one(Draft(NAME, where=where if len(found) > 1 else ""), value)


def _thread(value: dict[str, Any]) -> str:
    for key in ("metadata", "checkpoint", "config"):
        inner = value.get(key)
        if isinstance(inner, dict) and inner.get("thread_id"):
            return text_of(inner["thread_id"])
    return text_of(value.get("thread_id"))


def _read_one(draft: Draft, value: Any) -> Draft:
    steps: list[Step] = []
    for number, item in enumerate(_messages(value) or []):
        where = f"messages[{number}]"
        message = _plain(item)
        if message is None:
            kind = item.get("type") if isinstance(item, dict) else type(item).__name__
            raise FormatError(f"is no message we know ({kind!r})", where=f"{draft.where} {where}".strip())
        steps += _steps(draft, message, where)
    add_steps(draft, steps)
    if isinstance(value, dict):
        inner = value.get("values")
        state: dict[str, Any] = inner if isinstance(inner, dict) else value
        draft.meta = {"thread": _thread(value), "created": value.get("created_at")}
        draft.meta |= {key: state.get(key) for key in ("title", "todos", "artifacts", "uploaded_files", "summary")}
        metadata = value.get("metadata")
        draft.model = draft.model or (text_of(metadata.get("model_name")) if isinstance(metadata, dict) else "")
    return draft


def _steps(draft: Draft, message: dict[str, Any], where: str) -> list[Step]:
    try:
        content = read_content(message.get("content"))
    except FormatError as error:
        raise FormatError(error.reason, where=f"{draft.where} {where}".strip()) from error
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text")
    kind = text_of(message["type"]).removesuffix("Chunk").removesuffix("Message").lower()
    match text_of(message.get("role")) if kind == "chat" else kind:
        case "ai" | "assistant":
            return [_turn(draft, message, content, where)]
        case "tool" | "function":
            failed = message.get("status") == "error"
            name = text_of(message.get("name"))
            return [Result(text_of(message.get("tool_call_id")), content.text, where, content.images, failed, name)]
        case "system":
            return [Said("system", content.text)]
        case "remove":
            return [Mark("context_edit", "a message was removed from the thread", {"message": message.get("id")})]
        case _:
            return [Said("user", content.text, content.images, text_of(message.get("name")))]


def _turn(draft: Draft, message: dict[str, Any], content: Content, where: str) -> Turn:
    extra = _object(message.get("additional_kwargs"))
    answer = _object(message.get("response_metadata"))
    calls = read_openai_calls(message.get("tool_calls")) + read_openai_calls(message.get("invalid_tool_calls"))
    if not calls:
        calls = content.calls or read_openai_calls(extra.get("tool_calls"))
    thinking = list(content.thinking)
    if thought := text_of(extra.get("reasoning_content")):
        thinking.insert(0, thought)
    draft.model = draft.model or text_of(answer.get("model_name") or answer.get("model"))
    usage = _usage(message.get("usage_metadata")) or read_usage(answer.get("token_usage") or answer.get("usage"))
    return Turn(where, content.texts, calls, thinking, content.images, usage, text_of(message.get("name")))


def _usage(value: Any) -> Usage | None:
    usage = read_usage(value)
    if usage is None:
        return None
    cached = number_of(_object(value.get("input_token_details")).get("cache_read")) or 0
    return Usage(usage.input_tokens, usage.output_tokens, cached)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
