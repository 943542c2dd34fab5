"""The last reader: finds lists of messages anywhere in a document, and says that it guessed.

Takes the longest list whose items look like messages (a role under any of the usual names, and something said). A document
of several records, or a list or dictionary of them, gives one trace per record that holds such a list. Invariant: every
trace of this reader carries a warning that names where the messages were found and how roles were read.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.exchanges import common
from pamer_lab.trajectory.shared.growing import chains
from pamer_lab.trajectory.shared.messages import add_message, read_facts
from pamer_lab.trajectory.shared.rows import attempt
from pamer_lab.trajectory.shared.vocabulary import CALLS, RESULT_IDS, read_id, role_of
from pamer_lab.trajectory.values import GENERIC

NAME = GENERIC
MAX_DEPTH = 12
ROLE_KEYS = ("role", "from", "sender", "speaker", "author", "type", "source")
TEXT_KEYS = ("content", "value", "text", "message", "parts", "body", "output")
OTHER_KEYS = ("name", "toolName", "function_call", "functionCall", "usage", "reasoning", "reasoning_content", "thinking")
CALL_KEYS = {*CALLS, "function_call", "functionCall"}
USED = {*ROLE_KEYS, *TEXT_KEYS, *OTHER_KEYS, *CALLS, *(set(RESULT_IDS) - {"id"})}


def detect(document: Document) -> bool:
    return any(_find(record.value) for record in document.records) or _is_conversation([record.value for record in document.records])


def read(document: Document) -> Iterator[Draft]:
    lines = [record.value for record in document.records]
    if document.kind == "jsonl" and _is_conversation(lines):
        yield attempt(NAME, "", _read_one, lines, "", "lines", lines)
        return
    episodes = (episode for record in document.records for episode in _episodes(record.where, record.value))
    held = [(where, value, *found) for where, value in episodes if (found := _find(value))]
    for chain in chains(held, lambda row: row[3]):
        where, value, path, messages = chain[-1]
        draft = attempt(NAME, where, _read_one, value, where, path, messages)
        if len(chain) > 1:
            draft.warn(chain[0][0], f"{len(chain)} records continue one another; they are one trace")
        yield draft


def _episodes(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The record itself, or its items where several of them hold a conversation each."""
    items: list[tuple[str, Any]] = []
    if isinstance(value, list) and not _is_conversation(value):
        items = [(place.strip(), item) for place, item in get.placed(value, f"{where} ")]
    elif isinstance(value, dict):
        held = [(key, item) for key, item in value.items() if isinstance(item, list) and len(item) > 1 and not _is_conversation(item)]
        for key, item in held:
            if _are_several(found for one in item if (found := _find(one))):
                items = [(place.strip(), one) for place, one in get.placed(item, f"{where} {key}")]
                break
        else:
            if len(value) > 1 and all(isinstance(item, dict) and _find(item) for item in value.values()):
                items = [(f"{where} {key}".strip(), item) for key, item in value.items()]
    if sum(_find(item) is not None for _, item in items) > 1:
        yield from items
    else:
        yield where, value


def _are_several(found: Iterable[tuple[str, list[Any]]]) -> bool:
    """More than one conversation; lists that all begin alike are one that grew, as in a log of prompts."""
    conversations = [messages for _, messages in found]
    longest = max(conversations, key=len, default=[])
    return len(conversations) > 1 and any(common(messages, longest) < len(messages) - 1 for messages in conversations)


def _find(value: Any) -> tuple[str, list[Any]] | None:
    """Path and items of the longest list of messages; the first of equally long ones."""
    best: tuple[str, list[Any]] | None = None
    pending: list[tuple[str, Any, int]] = [("", value, 0)]
    while pending:
        path, item, depth = pending.pop()
        if isinstance(item, list):
            if _is_conversation(item) and (best is None or len(item) > len(best[1])):
                best = (path or "the list itself", item)
            children = list(get.placed(item, path))
        elif isinstance(item, dict):
            children = [(f"{path}.{key}".lstrip("."), child) for key, child in item.items()]
        else:
            continue
        if depth < MAX_DEPTH:
            pending.extend((place, child, depth + 1) for place, child in reversed(children) if isinstance(child, dict | list))
    return best


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
    """(field, content) of what a message says."""
    for key in TEXT_KEYS:
        value = item.get(key)
        if isinstance(value, str | list) or (isinstance(value, dict) and ("parts" in value or "text" in value or "content" in value)):
            return key, value
    return (key, None) if (key := next((key for key in TEXT_KEYS if key in item), "")) else None


def _read_one(value: Any, where: str, path: str, messages: list[Any]) -> Draft:
    draft = Draft(NAME, where=where, orphans="as_user")
    if isinstance(value, dict):
        read_facts(draft, value)
        if isinstance(value.get("tools"), str):
            read_facts(draft, value | {"tools": get.parsed(value["tools"])})
    renamed: set[str] = set()
    for place, item in get.placed(messages, path):
        _add(draft, item, place, renamed)
    how = f"; roles read as {', '.join(sorted(renamed))}" if renamed else ""
    if unused := {key for item in messages if isinstance(item, dict) for key in item} - USED:
        how += f"; fields of messages left out: {', '.join(sorted(unused)[:20])}"
    guess = f"no known format: took the longest list of messages, {len(messages)} items at {path}{how}"
    draft.warnings.insert(0, draft.warning(path, guess))
    return draft


def _add(draft: Draft, item: Any, where: str, renamed: set[str]) -> None:
    role = _role(item)
    if role is None:
        draft.warn(where, "is no message we can read; kept as an event")
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
    if role == "tool" and not draft.open_calls() and not read_id(item, *RESULT_IDS[:-1]):
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
