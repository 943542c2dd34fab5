"""Chats as pairs `[user, assistant]`, as Gradio's chat components and some fine-tuning files keep them."""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import attempt, one_value, trace_rows

NAME = "chat-pairs"
HOLDERS = ("history", "chat_history", "chatbot", "conversation", "conversations", "chat", "data")


def detect(document: Document) -> bool:
    return bool(_pairs(one_value(document))) or any(_pairs(row) for _, row in trace_rows(document)[:5])


def _pairs(value: Any) -> list[Any]:
    """The pairs of a chat; empty if any item is not a pair, or if no pair has an answer."""
    found = value if isinstance(value, list) else next((held for key in HOLDERS if (held := get.items(value, key))), [])
    if not all(isinstance(item, list) and len(item) == 2 and all(isinstance(said, str | None) for said in item) for item in found):
        return []
    return found if any(item[1] for item in found) else []


def read(document: Document) -> Iterator[Draft]:
    if pairs := _pairs(one_value(document)):
        yield _read_one(pairs, "", {})
        return
    for where, row in trace_rows(document):
        yield attempt(NAME, where, _read_one, _pairs(row), where, row)


def _read_one(pairs: list[Any], where: str, about: dict[str, Any]) -> Draft:
    draft = Draft(NAME, where=where)
    if system := get.text(about, "system", "system_prompt", "system_message"):
        draft.system(system)
    for place, (asked, answered) in get.placed(pairs, "pairs"):
        if asked:
            draft.user(asked)
        if answered is not None:
            draft.assistant(answered, where=place)
    draft.task_id, draft.model = get.text(about, "id"), get.text(about, "model")
    return draft
