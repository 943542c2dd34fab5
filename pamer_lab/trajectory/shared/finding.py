"""Lists of messages anywhere in a document, for the readers that know messages but not their file.

A document of several records, or a list or dictionary of them, gives one conversation per record that holds such a list. What makes a list
a conversation is the caller's rule. Invariant: the lists that were not taken are counted.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.exchanges import common
from pamer_lab.trajectory.shared.growing import chains
from pamer_lab.trajectory.shared.rows import attempt

MAX_DEPTH = 12
HOLDER_DEPTH = 2
"""Levels of objects around a list of conversations that are searched."""
TIMES = ("created_at", "createdAt", "timestamp", "create_time", "time", "ts")
Rule = Callable[[list[Any]], bool]


class Found(NamedTuple):
    """A record with the conversation in it."""

    where: str
    """Place of the record."""
    value: Any
    path: str
    """Place of the conversation inside the record."""
    messages: list[Any]
    others: list[tuple[str, int]]
    """(path, number of items) of the record's other lists of messages, which are not part of this one."""


def read_found(document: Document, name: str, is_conversation: Rule, read_one: Callable[[Found], Draft]) -> Iterator[Draft]:
    """A draft per conversation of a document; records that continue one another are one, and those without messages are counted."""
    without: list[str] = []
    for number, chain in enumerate(chains(find_all(document, is_conversation, without), lambda found: found.messages)):
        draft = attempt(name, chain[-1].where, read_one, chain[-1])
        if len(chain) > 1:
            draft.warn(chain[0].where, f"{len(chain)} records continue one another; they are one trace")
        if number == 0 and without:
            draft.unread("record without messages", without[0], len(without))
        yield draft


def find_all(document: Document, is_conversation: Rule, without: list[str]) -> Iterator[Found]:
    """The conversations of a document, one per record that holds any; `without` gets the places of the other records."""
    lines = [record.value for record in document.records]
    if document.kind == "jsonl" and is_conversation(lines):
        yield Found("", lines, "lines", lines, [])
        return
    for record in document.records:
        for where, value in _records(record.where, record.value, is_conversation):
            if found := find(value, is_conversation):
                path, messages = found
                yield Found(where, value, path, messages, _others(value, is_conversation, messages))
            else:
                without.append(where)


def find(value: Any, is_conversation: Rule) -> tuple[str, list[Any]] | None:
    """Path and items of the longest list of messages; the first of equally long ones."""
    best: tuple[str, list[Any]] | None = None
    for path, items in _lists(value, is_conversation):
        if best is None or len(items) > len(best[1]):
            best = (path or "the list itself", items)
    return best


def _lists(value: Any, is_conversation: Rule) -> Iterator[tuple[str, list[Any]]]:
    pending: list[tuple[str, Any, int]] = [("", value, 0)]
    while pending:
        path, item, depth = pending.pop()
        if isinstance(item, list):
            if is_conversation(item):
                yield path, item
            children = list(get.placed(item, path))
        elif isinstance(item, dict):
            children = [(f"{path}.{key}".lstrip("."), child) for key, child in item.items()]
        else:
            continue
        if depth < MAX_DEPTH:
            pending.extend((place, child, depth + 1) for place, child in reversed(children) if isinstance(child, dict | list))


def _others(value: Any, is_conversation: Rule, taken: list[Any]) -> list[tuple[str, int]]:
    """Lists other than the one taken that do not repeat its beginning and are not inside it."""
    inside = {id(items) for item in taken for _, items in _lists(item, is_conversation)}
    beside = ((path, items) for path, items in _lists(value, is_conversation) if items is not taken and id(items) not in inside)
    return [(path, len(items)) for path, items in beside if common(items, taken) < len(items)]


def _records(where: str, value: Any, is_conversation: Rule) -> Iterator[tuple[str, Any]]:
    """The record itself, or its items where several of them hold a conversation each."""
    items: list[tuple[str, Any]] = []
    if isinstance(value, list) and not is_conversation(value):
        items = [(place.strip(), item) for place, item in get.placed(value, f"{where} ")]
    elif isinstance(value, dict):
        items = _held(where, value, is_conversation)
        if not items and len(value) > 1 and all(isinstance(item, dict) and find(item, is_conversation) for item in value.values()):
            items = [(f"{where} {key}".strip(), item) for key, item in value.items()]
    if sum(find(item, is_conversation) is not None for _, item in items) > 1:
        yield from items
    else:
        yield where, value


def _held(where: str, value: dict[str, Any], is_conversation: Rule, depth: int = 0) -> list[tuple[str, Any]]:
    """The items of a list in an object, or in an object inside it, that hold a conversation each, as exports of chats do."""
    for key, item in value.items():
        place = f"{where} {key}".strip()
        if isinstance(item, list) and len(item) > 1 and not is_conversation(item):
            if _are_several(found for one in item if (found := find(one, is_conversation))):
                return list(get.placed(item, place))
        elif isinstance(item, dict) and depth < HOLDER_DEPTH and (inner := _held(place, item, is_conversation, depth + 1)):
            return inner
    return []


def _are_several(found: Iterable[tuple[str, list[Any]]]) -> bool:
    """Whether there is more than one conversation; lists that all begin alike are one that grew, as in a log of prompts."""
    conversations = [messages for _, messages in found]
    longest = max(conversations, key=len, default=[])
    return len(conversations) > 1 and any(common(messages, longest) < len(messages) - 1 for messages in conversations)


def warn_others(draft: Draft, found: Found) -> None:
    """Count the lists of messages that the trace leaves out."""
    for path, count in found.others:
        draft.unread(f"messages at {path}", path, count)


def in_order(draft: Draft, messages: list[Any], where: str) -> list[Any]:
    """The messages with the oldest first; some interfaces list the newest first."""
    times = [get.as_time(get.some(item, *TIMES)) for item in messages]
    known = [time for time in times if time is not None]
    if len(known) < len(times) or len(known) < 2 or not known[0] > known[-1] or known != sorted(known, reverse=True):
        return messages
    draft.warn(where, "the newest message comes first in the file; the messages were sorted by time")
    return messages[::-1]
