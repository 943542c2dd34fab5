"""Claude.ai's export: conversations with `chat_messages`, sorted chronologically.

Attachments are part of the user's message. An assistant message that holds calls, their results and more text becomes several turns.
If messages name their parents, the trace is the path to the newest leaf, and each message on another branch becomes a note.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.branches import path_to
from pamer_lab.trajectory.shared.ordered import ordered_steps
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episodes
from pamer_lab.trajectory.shared.span_attributes import nanoseconds
from pamer_lab.trajectory.shared.steps import Mark, Said, Step, add_steps

NAME = "claude-ai-export"


def detect(document: Document) -> bool:
    return any("sender" in get.first(value, "chat_messages") for value in first_episodes(document))


def read(document: Document) -> Iterator[Draft]:
    for where, value in episodes(document):
        if not isinstance(value, dict) or get.items(value, "chat_messages") or "chat_messages" not in value:
            yield attempt(NAME, where, _read_one, value, where)


def _read_one(value: Any, where: str) -> Draft:
    messages = get.objects(value, "chat_messages")
    if not messages:
        raise FormatError("is not a conversation with `chat_messages`", where=where)
    draft = Draft(NAME, where=where, orphans="as_user")
    shown, beside = _shown(messages, get.text(value, "current_leaf_message_uuid"))
    steps: list[Step] = []
    for message in shown:
        steps += _steps(draft, message)
    for message in beside:
        steps.append(Mark("note", get.text(message, "text"), {"what": "another branch", "role": message.get("sender")}))
    draft.task_id = get.text(value, "uuid")
    draft.model = get.text(value, "model")
    draft.meta = get.facts(value, "name", "created_at", "summary")
    add_steps(draft, steps)
    return draft


def _shown(messages: list[dict[str, Any]], leaf: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(messages of the shown path in order, messages of other branches)."""
    ordered = sorted(messages, key=_time)
    by_id = {get.text(message, "uuid"): message for message in messages}
    parents = {get.text(message, "parent_message_uuid") for message in messages} & by_id.keys()
    if not parents:
        return ordered, []
    last = leaf if leaf in by_id else get.text(ordered[-1], "uuid")
    path = [by_id[key] for key in path_to(last, {key: get.text(message, "parent_message_uuid") for key, message in by_id.items()})]
    shown = {id(message) for message in path}
    return path, [message for message in ordered if id(message) not in shown]


def _time(message: dict[str, Any]) -> tuple[int, int, int]:
    index = get.count(message, "index")
    return (index or 0, nanoseconds(message.get("created_at")), message.get("sender") != "human")


def _steps(draft: Draft, message: dict[str, Any]) -> list[Step]:
    where = get.text(message, "uuid") or "chat_messages"
    parts = get.items(message, "content")
    if not any(_says(part) for part in parts):
        parts = [message.get("text") or ""]
    if message.get("sender") in ("assistant", "ai"):
        return ordered_steps(draft, parts, where)
    content = content_of(draft, parts, where)
    for attached in get.objects(message, "attachments"):
        content.texts.append(f"[file: {get.text(attached, 'file_name') or 'unnamed'}]\n{get.text(attached, 'extracted_content')}".strip())
    for file in [*get.objects(message, "files"), *get.objects(message, "files_v2")]:
        content.texts.append(f"[file: {get.text(file, 'file_name') or 'unnamed'}, size not recorded]")
    return [Said("user", content.text, content.images)]


def _says(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and (part.get("type") != "text" or bool(part.get("text"))))
