"""LangGraph thread states, streams of updates and LangChain message lists: roles human, ai, tool and system.

Call ids are unique only within their thread, sometimes only within their message, which is all the trace needs. System
messages in the middle of a run stay where they are. Reasoning is kept apart. A tool's `artifact` was never sent to the model
and is not read.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.parts import Content, content_of
from pamer_lab.trajectory.shared.rows import Row, first_value, rows
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "langgraph-thread-state"
SHORT = ("human", "ai", "tool", "system", "function", "chat", "remove")
TYPES = (*SHORT, "HumanMessage", "AIMessage", "AIMessageChunk", "ToolMessage", "SystemMessage")
HOLDERS = ("values", "channel_values", "state", "checkpoint")


def detect(document: Document) -> bool:
    root = first_value(document)
    return (
        bool(_updates(document))
        or _messages(root) is not None
        or (isinstance(root, list) and _messages(next(iter(root), None)) is not None)
    )


def _plain(item: Any) -> dict[str, Any] | None:
    """A message in plain form, converted from any of LangChain's three serialisations; None if it is not a message."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("data"), dict) and item.get("type") in TYPES:
        return {**item["data"], "type": item["type"]}
    if isinstance(item.get("kwargs"), dict) and isinstance(item.get("id"), list) and item["id"]:
        return {**item["kwargs"], "type": get.as_text(item["id"][-1])}
    return item if item.get("type") in TYPES and ("content" in item or item["type"] == "remove") else None


def _messages(value: Any) -> list[Any] | None:
    """The message list of a state, or None."""
    for _ in range(3):
        if isinstance(value, list):
            return value if value and _plain(value[0]) is not None else None
        if not isinstance(value, dict):
            return None
        value = value.get("messages") or get.obj(value, *HOLDERS)
    return None


def _updates(document: Document) -> list[Any]:
    """The messages of a stream of updates, in which every record is one node's (`{"agent": {"messages": [...]}}`)."""
    found = rows(document)
    nodes = [next(iter(row.values())) for _, row in found if len(row) == 1]
    if len(nodes) < 2 or len(nodes) < len(found) or not any(_messages(get.items(node, "messages")) for node in nodes):
        return []
    return [message for node in nodes for message in get.items(node, "messages")]


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    if updates := _updates(document):
        yield _read_one(Draft(NAME), {"messages": updates})
        return
    if document.kind == "json" and _messages(root) is not None:
        yield _read_one(Draft(NAME), root)
        return
    found = [(where, value) for where, value in rows(document) if _messages(value) is not None]
    where, state = max(found, key=lambda item: len(_messages(item[1]) or []), default=("", {}))
    longest = _messages(state) or []
    if len(found) > 1 and (_is_one_thread(document, found) or all(_is_within(value, longest) for _, value in found)):
        draft = Draft(NAME)
        draft.warn(where, f"the longest of {len(found)} states of one thread was read")
        yield _read_one(draft, state)
        return
    for where, value in found:
        yield _read_one(Draft(NAME, where=where if len(found) > 1 else ""), value)


def _is_one_thread(document: Document, found: list[Row]) -> bool:
    """Whether these are checkpoints of one thread, which repeat each other: the longest contains all messages."""
    return document.kind == "json" and len({_thread(value) for _, value in found}) == 1 and "checkpoint" in found[0][1]


def _is_within(state: Any, longest: list[Any]) -> bool:
    """Whether the messages of a state are a prefix of the longest list, as in an earlier state of the same thread."""
    messages = _messages(state) or []
    return messages == longest[: len(messages)]


def _thread(value: dict[str, Any]) -> str:
    holders = (get.obj(value, "metadata"), get.obj(value, "checkpoint"), get.obj(value, "config"), value)
    return next(filter(None, (get.text(holder, "thread_id") for holder in holders)), "")


def _read_one(draft: Draft, value: Any) -> Draft:
    steps: list[Step] = []
    for where, item in get.placed(_messages(value) or [], "messages"):
        message = _plain(item)
        if message is None:
            kind = item.get("type") if isinstance(item, dict) else type(item).__name__
            raise draft.fault(where, f"is not a known kind of message ({kind!r})")
        steps += _steps(draft, message, where)
    add_steps(draft, steps)
    if isinstance(value, dict):
        state = get.obj(value, "values") or value
        draft.meta = {"thread": _thread(value), "created": value.get("created_at")}
        draft.meta |= get.facts(state, "title", "todos", "artifacts", "uploaded_files", "summary")
        draft.model = draft.model or get.text(get.obj(value, "metadata"), "model_name")
    return draft


def _steps(draft: Draft, message: dict[str, Any], where: str) -> list[Step]:
    content = content_of(draft, message.get("content"), where)
    kind = get.text(message, "type").removesuffix("Chunk").removesuffix("Message").lower()
    match get.text(message, "role") if kind == "chat" else kind:
        case "ai" | "assistant":
            return [_turn(draft, message, content, where)]
        case "tool" | "function":
            failed = message.get("status") == "error"
            name = get.text(message, "name")
            return [Result(get.text(message, "tool_call_id"), content.text, where, content.images, failed, name)]
        case "system":
            return [Said("system", content.text)]
        case "remove":
            return [Mark("context_edit", "a message was removed from the thread", {"message": message.get("id")})]
        case _:
            return [Said("user", content.text, content.images, get.text(message, "name"))]


def _turn(draft: Draft, message: dict[str, Any], content: Content, where: str) -> Turn:
    extra, answer = get.obj(message, "additional_kwargs"), get.obj(message, "response_metadata")
    calls = read_calls(message.get("tool_calls")) + read_calls(message.get("invalid_tool_calls"))
    if not calls:
        calls = content.calls or read_calls(extra.get("tool_calls"))
    thinking = list(content.thinking)
    if thought := get.text(extra, "reasoning_content"):
        thinking.insert(0, thought)
    draft.model = draft.model or get.text(answer, "model_name", "model")
    usage = read_usage(message.get("usage_metadata")) or read_usage(get.some(answer, "token_usage", "usage"))
    return Turn(where, content.texts, calls, thinking, content.images, usage, get.text(message, "name"))
