"""Rows of a database or a table that hold messages, mostly as JSON text: one conversation per row, or one message per row.

The text is parsed and passed to the other readers; rows with one message each are grouped by session.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.parsing import Record
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import steps_of
from pamer_lab.trajectory.shared.rows import Row, attempt, rows
from pamer_lab.trajectory.shared.span_values import prompt_of
from pamer_lab.trajectory.shared.steps import add_steps
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.shared.vocabulary import KINDS, plain_word, role_of

NAME = "json-text-rows"
FIELDS = (
    "messages conversation conversations history trajectory transcript chat chat_history message_list dialog dialogue traj steps".split()
)
MESSAGES = "message message_data message_json data payload body content_json event item value json raw".split()
SESSIONS = "session_id sessionId conversation_id conversationId thread_id threadId chat_id run_id trace_id".split()


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl", "folder"):
        return False
    head = [row for _, row in islice(rows(document), 20)] or ([document.root] if isinstance(document.root, dict) else [])
    return any(_list(row) or _message(row) for row in head)


def _list(row: dict[str, Any]) -> tuple[str, list[Any]] | None:
    """(field, messages) of a row that holds a conversation as text."""
    for key in FIELDS:
        text = row.get(key)
        found = get.parsed(text) if isinstance(text, str) and text.lstrip()[:1] == "[" else None
        messages = found if isinstance(found, list) and all(isinstance(item, dict) for item in found) else []
        if messages and {"role", "from", "type", "kind", "sender"} & messages[0].keys():
            return key, messages
    return None


def _message(row: dict[str, Any]) -> dict[str, Any] | None:
    """The message that a row holds as JSON text or as an object, or the row itself if its content is the JSON text of parts."""
    content = row.get("content")
    if isinstance(content, str) and role_of(row.get("role")) and isinstance(found := _parts(content), list):
        return {**row, "content": found}
    held = row.get("message")
    if isinstance(held, dict) and role_of(held.get("role")) and "content" in held and "type" not in row and "role" not in row:
        return held
    for key in MESSAGES:
        text = row.get(key)
        found = get.parsed(text) if isinstance(text, str) and text.lstrip()[:1] == "{" else None
        if isinstance(found, dict) and (role_of(found.get("role")) or "call_id" in found or (_langchain(found) and "data" in found)):
            return (prompt_of([found]) or [found])[0] if _langchain(found) else found
    return None


def _langchain(found: dict[str, Any]) -> bool:
    return found.get("type") in ("human", "ai", "system", "tool") and isinstance(found.get("data"), dict)


def _parts(text: str) -> Any:
    found = get.parsed(text) if text.lstrip()[:2] in ("[{", "[ ") else None
    if isinstance(found, list) and found and all(isinstance(part, dict) for part in found):
        return found if all(KINDS.get(plain_word(part.get("type"))) for part in found) else None
    return None


def read(document: Document) -> Iterator[Draft]:
    found = rows(document) or [("", document.root)]
    if any(_list(row) for _, row in found[:20]):
        yield from _read_lists(document, found)
        return
    sessions: dict[str, list[Row]] = {}
    for where, row in found:
        sessions.setdefault(get.text(row, *SESSIONS), []).append((where, row))
    for own, held in sessions.items():
        yield attempt(NAME, held[0][0] if len(sessions) > 1 else "", _read_messages, own, held)


def _read_lists(document: Document, found: list[Row]) -> Iterator[Draft]:
    """Parse the conversations of the rows and pass them to the reader that recognises them."""
    from pamer_lab.trajectory.formats import read_inside

    records = []
    for where, row in found:
        held = _list(row)
        records.append(Record(where, {**row, held[0]: held[1], "messages": held[1]} if held else row))
    return read_inside(document, records, NAME)


def _read_messages(own: str, held: list[Row]) -> Draft:
    draft = Draft(NAME, orphans="as_user")
    messages = []
    for where, row in held:
        if message := _message(row) or (row if role_of(row.get("role")) and "content" in row else None):
            messages.append(message)
            draft.model = get.text(message, "model") or get.text(row, "model") or draft.model
        else:
            draft.unread("row without a message", where)
    draft.task_id = own
    add_steps(draft, steps_of(draft, messages, "rows"))
    draft.usage = read_usage(held[-1][1].get("usage"))
    return draft
