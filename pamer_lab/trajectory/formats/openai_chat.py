"""Plain OpenAI chat: a list of messages, or an object with `messages`; JSON or one conversation per line."""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared.growing import read_chains
from pamer_lab.trajectory.shared.messages import add_message, add_messages, add_system, is_message, read_facts, warn_unused
from pamer_lab.trajectory.shared.rows import first_episode

NAME = "openai-chat"


def detect(document: Document) -> bool:
    first = first_episode(document)
    return is_message(first) or _conversation(first) is not None


def read(document: Document) -> Iterator[Draft]:
    if document.kind == "jsonl" and is_message(document.root):
        yield _read_lines(document)
    elif isinstance(document.root, list) and is_message(first_episode(document)):
        for record in document.records:
            yield _read_one(record.value, record.where)
    else:
        yield from read_chains(document, NAME, _read_one, _conversation)


def _read_lines(document: Document) -> Draft:
    """One message per line."""
    draft = Draft(NAME)
    for record in document.records:
        if not is_message(record.value):
            raise FormatError("is not a message like the lines before it", where=record.where)
        add_message(draft, record.value, record.where)
    warn_unused(draft, [record.value for record in document.records])
    return draft


def _read_one(value: Any, where: str) -> Draft:
    messages = value if isinstance(value, list) else _conversation(value)
    if messages is None:
        raise FormatError("is not a conversation like the ones before it", where=where)
    draft = Draft(NAME, where=where)
    if isinstance(value, dict):
        read_facts(draft, value)
        add_system(draft, value, messages)
    add_messages(draft, messages)
    warn_unused(draft, messages)
    return draft


def _conversation(value: Any) -> list[Any] | None:
    """The message list of a conversation, or None where the value is not one."""
    found = value.get("messages") if isinstance(value, dict) else value
    return found if isinstance(found, list) and (is_message(found[0]) if found else isinstance(value, dict)) else None
