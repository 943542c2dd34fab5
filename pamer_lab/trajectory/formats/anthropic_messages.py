"""Anthropic messages: `system` next to `messages` whose content has `tool_use` and `tool_result` parts.

One object, a list of them, one per line, or the bare list of messages. `tool_result` parts of a user message become results
of their calls; text next to them follows as a user message. A stored `response` closes the conversation.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.growing import read_chains
from pamer_lab.trajectory.shared.messages import add_messages, add_system, is_message, read_facts
from pamer_lab.trajectory.shared.rows import attempt, first_episode

NAME = "anthropic-messages"
OWN_PARTS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use")


def detect(document: Document) -> bool:
    first = first_episode(document)
    if is_message(first):
        return _is_anthropic(document.root if isinstance(document.root, list) else _lines(document))
    messages = get.items(first, "messages")
    if not messages or not is_message(messages[0]):
        return False
    has_system = isinstance(first.get("system"), str | list) and messages[0].get("role") in ("user", "assistant")
    return has_system or _is_anthropic(messages)


def _lines(document: Document) -> list[Any]:
    return [record.value for record in document.records]


def _is_anthropic(messages: list[Any]) -> bool:
    """Only user and assistant speak, and some part is of a type that only Anthropic's content has."""
    if any(isinstance(item, dict) and item.get("role") not in ("user", "assistant", "system") for item in messages):
        return False
    return any(part.get("type") in OWN_PARTS for item in messages for part in get.objects(item, "content"))


def read(document: Document) -> Iterator[Draft]:
    if not is_message(first_episode(document)):
        yield from read_chains(document, NAME, _read_one, lambda value: get.items(value, "messages"))
    elif isinstance(document.root, list):
        for record in document.records:
            yield attempt(NAME, record.where, _read_one, {"messages": record.value}, record.where)
    else:
        yield attempt(NAME, "", _read_one, {"messages": _lines(document)}, "")


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise FormatError("is not a conversation with `messages`", where=where)
    draft = Draft(NAME, where=where)
    read_facts(draft, value)
    add_system(draft, value, value["messages"])
    add_messages(draft, value["messages"])
    answer = get.obj(value, "response")
    if isinstance(answer.get("content"), list | str):
        add_messages(draft, [{"role": "assistant", "content": answer["content"], "usage": answer.get("usage")}], place="response")
    return draft
