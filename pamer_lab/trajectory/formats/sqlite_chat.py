"""Chats in the SQLite stores of other agents (Crush, Hermes, `llm`, Zed and similar): a table with one message, or one chat, per row.

A row has a role and its content or `parts`, a JSON message in one column, or a prompt with its response; a row of Zed's store is a
thread, which is passed to the other readers. JSON columns are parsed. Rows of one session or conversation form one trace, in table order;
rows marked as inactive are left out.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.parsing import Record
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import steps_of
from pamer_lab.trajectory.shared.messages import add_message, add_system
from pamer_lab.trajectory.shared.steps import add_steps
from pamer_lab.trajectory.shared.usage import priced, read_usage, usage_in
from pamer_lab.trajectory.shared.vocabulary import role_of

NAME = "sqlite-chat"
SESSIONS = ("session_id", "conversation_id", "thread_id", "chat_id", "sessionId", "conversationId")
CONTENT = ("content", "parts", "content_json", "text", "message", "body")
FIELDS = ("tool_calls", "tool_call_id", "name", "tool_name", "reasoning", "reasoning_content", "thinking")
LISTS = ("messages", "conversation", "history", "events", "entries")
NOT_SENT = ("finish",)
"""Parts that only say how a message ended."""

Rows = list[dict[str, Any]]


def detect(document: Document) -> bool:
    return document.kind == "sqlite" and bool(_table(document.root) or _chats(document.root))


def _chats(tables: dict[str, Rows]) -> list[Record]:
    """The rows of any table that keep a complete chat as JSON in one column."""
    found: list[Record] = []
    for name, rows in tables.items():
        for where, row in get.placed(rows, name):
            values = (value for value in map(_json, row.values()) if isinstance(value, dict))
            chat = next((value for value in values if any(get.objects(value, key) for key in LISTS)), None)
            if chat is not None:
                found.append(Record(where, {"id": row.get("id"), **chat}))
    return found


def _table(tables: dict[str, Rows]) -> Rows:
    """The largest table whose rows are messages."""
    found = [rows for rows in tables.values() if any(_message(row) for row in rows[:20])]
    return max(found, key=len, default=[])


def read(document: Document) -> Iterator[Draft]:
    rows = _table(document.root)
    if not rows:
        from pamer_lab.trajectory.formats import read_inside

        yield from read_inside(document, _chats(document.root), NAME)
        return
    sessions = _sessions(document.root)
    groups: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for where, row in get.placed(rows, "row "):
        groups.setdefault(get.text(row, *SESSIONS), []).append((where, row))
    for key, group in groups.items():
        draft = Draft(NAME, where=key if len(groups) > 1 else "", orphans="as_user")
        about = sessions.get(key, {})
        add_system(draft, about, [message for _, row in group for message in _message(row)])
        if any("role" not in message for _, row in group for message in _message(row)):
            _add_items(draft, group)
        else:
            for where, row in group:
                _add(draft, row, where)
        draft.model = draft.model or get.text(about, "model", "model_id")
        draft.usage = priced(read_usage(about), get.some(about, "cost", "actual_cost_usd", "estimated_cost_usd"))
        draft.meta |= {"session": key, "title": get.text(about, "title", "name") or None}
        yield draft


def _sessions(tables: dict[str, Rows]) -> dict[str, dict[str, Any]]:
    """Session id -> its row, with the title, and sometimes the model, system prompt and tokens."""
    rows = [row for name, rows in tables.items() if name in ("sessions", "session", "conversations", "threads", "chats") for row in rows]
    return {get.text(row, "id", *SESSIONS): row for row in rows}


def _add(draft: Draft, row: dict[str, Any], where: str) -> None:
    draft.model = draft.model or get.text(row, "model", "model_id")
    if row.get("active") == 0:
        draft.unread("inactive row", where)
        return
    messages = _message(row)
    if not messages:
        draft.unread("row without a message", where)
    for message in messages:
        add_message(draft, message, where)


def _add_items(draft: Draft, group: list[tuple[str, dict[str, Any]]]) -> None:
    """Add rows that include items of the Responses API, several of which may form one turn."""
    found = [(where, _message(row)) for where, row in group]
    for where in (where for where, messages in found if not messages):
        draft.unread("row without a message", where)
    add_steps(draft, steps_of(draft, [message for _, messages in found for message in messages], "row "))


def _message(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a row: one, or a prompt with its response; none where it is about something else."""
    if role_of(row.get("role")):
        given = next((row[key] for key in CONTENT if row.get(key) is not None), None)
        fields = {key: _json(row[key]) for key in FIELDS if row.get(key) not in (None, "")}
        if "tool_name" in fields:
            fields["name"] = fields.pop("tool_name")
        return [{"role": row["role"], "content": _parts(_json(given)), **fields}]
    if isinstance(row.get("prompt"), str) and isinstance(row.get("response"), str):
        system = [{"role": "system", "content": row["system"]}] if isinstance(row.get("system"), str) and row["system"] else []
        usage = usage_in(row, sent="input_tokens", given="output_tokens")
        answer = {"role": "assistant", "content": row["response"]}
        tokens = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens} if usage else {}
        return [*system, {"role": "user", "content": row["prompt"]}, answer | ({"usage": tokens} if tokens else {})]
    found = [value for value in map(_json, row.values()) if isinstance(value, dict)]
    return next(([value] for value in found if _is_item(value) or (role_of(value.get("role")) and "content" in value)), [])


def _is_item(value: dict[str, Any]) -> bool:
    """An item of the Responses API, as the OpenAI Agents SDK keeps them: a call, its output, or reasoning."""
    return value.get("type") in ("reasoning", "function_call", "function_call_output") or ("call_id" in value and "type" in value)


def _json(value: Any) -> Any:
    """The value of a column, parsed if it is a JSON list or object."""
    parsed = get.parsed(value) if isinstance(value, str) and value[:1] in ("[", "{") else None
    return parsed if isinstance(parsed, dict | list) else value


def _parts(value: Any) -> Any:
    """Move the fields of parts from `data`, where Crush stores them, next to the type."""
    if not isinstance(value, list):
        return value
    kept = [part for part in value if not (isinstance(part, dict) and part.get("type") in NOT_SENT)]
    return [
        {**part["data"], "type": part.get("type")} if isinstance(part, dict) and isinstance(part.get("data"), dict) else part
        for part in kept
    ]
