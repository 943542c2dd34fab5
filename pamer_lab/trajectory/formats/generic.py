"""The last reader: finds lists of messages anywhere in a document, and warns that it guessed.

Takes the longest list whose items look like messages (text under a role with any of the usual names). A document of several
records, or a list or dictionary of them, gives one trace per record that holds such a list. Invariant: every trace of this
reader carries a warning that names where the messages were found and how roles were read.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.finding import Found, find, in_order, read_found, warn_others
from pamer_lab.trajectory.shared.messages import add_message, add_system, read_facts
from pamer_lab.trajectory.shared.vocabulary import CALL_IDS, CALLS, read_id, role_of
from pamer_lab.trajectory.values import GENERIC

NAME = GENERIC
ROLE_KEYS = ("role", "from", "sender", "speaker", "author", "type", "source")
TEXT_KEYS = ("content", "value", "text", "message", "parts", "body", "output")
OTHER_KEYS = ("name", "toolName", "function_call", "functionCall", "usage", "reasoning", "reasoning_content", "thinking")
CALL_KEYS = {*CALLS, "function_call", "functionCall"}
USED = {*ROLE_KEYS, *TEXT_KEYS, *OTHER_KEYS, *CALLS, *(set(CALL_IDS) - {"id"})}


def detect(document: Document) -> bool:
    return any(find(record.value, _is_conversation) for record in document.records) or _is_conversation(
        [record.value for record in document.records]
    )


def read(document: Document) -> Iterator[Draft]:
    yield from read_found(document, NAME, _is_conversation, _read_one)


def _is_conversation(items: list[Any]) -> bool:
    """Nearly all items are messages, and at least one is the agent's."""
    if not items or not isinstance(items[0], dict):
        return False
    roles = [_role(item) for item in items]
    known = sum(role is not None for role in roles)
    return known >= 0.8 * len(items) and ("assistant" in roles or "call" in roles)


def _role(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    key, role = _speaker(item)
    if not key:
        return None
    return role if _said(item) is not None or CALL_KEYS & item.keys() else None


def _speaker(item: dict[str, Any]) -> tuple[str, str]:
    """(field, our role) of the first field that names a speaker we know."""
    for key in ROLE_KEYS:
        value = item.get(key)
        if isinstance(value, dict):
            value = value.get("role")
        if role := role_of(value):
            return key, role
    return "", ""


def _said(item: dict[str, Any]) -> tuple[str, Any] | None:
    """(field, content) of a message."""
    for key in TEXT_KEYS:
        value = item.get(key)
        if isinstance(value, str | list) or (isinstance(value, dict) and ("parts" in value or "text" in value or "content" in value)):
            return key, value
    return (key, None) if (key := next((key for key in TEXT_KEYS if key in item), "")) else None


def _read_one(found: Found) -> Draft:
    value, path, draft = found.value, found.path, Draft(NAME, where=found.where, orphans="as_user")
    messages = in_order(draft, found.messages, path)
    if isinstance(value, dict):
        read_facts(draft, value)
        if isinstance(value.get("tools"), str):
            read_facts(draft, value | {"tools": get.parsed(value["tools"])})
        add_system(draft, value, messages)
    renamed: set[str] = set()
    for place, item in get.placed(messages, path):
        _add(draft, item, place, renamed)
    how = f"; roles read as {', '.join(sorted(renamed))}" if renamed else ""
    if unused := {key for item in messages if isinstance(item, dict) for key in item} - USED:
        how += f"; fields of messages left out: {', '.join(sorted(unused)[:20])}"
    guess = f"no known format: took the longest list of messages, {len(messages)} items at {path}{how}"
    draft.warnings.insert(0, draft.warning(path, guess))
    warn_others(draft, found)
    return draft


def _add(draft: Draft, item: Any, where: str, renamed: set[str]) -> None:
    role = _role(item)
    if role is None:
        draft.warn(where, "is not a readable message; kept as an event")
        draft.event("note", json_text(item))
        return
    key, _ = _speaker(item)
    said = _said(item)
    content = _unwrap(said[1]) if said else None
    if (given := str(item[key])) != role and isinstance(item[key], str):
        renamed.add(f"{given} = {'assistant call' if role == 'call' else role}")
    if role == "call":
        _add_call(draft, content, where)
        return
    if role == "tool" and not draft.open_calls() and not read_id(item, *CALL_IDS[:-1]):
        role = "user"  # a result of an action that was text
    message = {name: item[name] for name in item if name not in (key, *TEXT_KEYS)} | {"role": role, "content": content}
    if role != "assistant":
        message = {name: value for name, value in message.items() if name not in CALL_KEYS}
    try:
        add_message(draft, message, where)
    except FormatError as error:
        raise FormatError(f"{error.reason} (no known format; the messages at {where} were a guess)", where=error.where) from error


def _unwrap(value: Any) -> Any:
    """Content that is one level deeper, as `{parts: [...]}` or `{content: ...}`."""
    if isinstance(value, dict) and not isinstance(value.get("type"), str):
        return next((value[key] for key in ("parts", "text", "content") if key in value), value)
    return value


def _add_call(draft: Draft, content: Any, where: str) -> None:
    """A turn that is only a call, written as JSON text with `name` and `arguments`."""
    calls = get.as_list(get.parsed(content))
    if all(isinstance(one, dict) and ("name" in one or "function" in one) for one in calls):
        add_message(draft, {"role": "assistant", "content": None, "tool_calls": calls}, where)
    else:
        draft.warn(where, "is a call that is not JSON with a name; kept as the agent's text")
        draft.assistant(json_text(content), where=where)
