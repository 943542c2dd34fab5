"""Messages of frameworks that have names of their own for role and content: LlamaIndex, Semantic Kernel, Microsoft's Agent Framework,
Haystack, Mastra, Agno, Zed threads, lists of ADK events, and items of OpenAI's Responses API (Agents SDK sessions, response dumps).

The longest such list in each record is its conversation, wherever the file keeps it.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import steps_of
from pamer_lab.trajectory.shared.finding import Found, find, in_order, read_found, warn_others
from pamer_lab.trajectory.shared.growing import is_agents
from pamer_lab.trajectory.shared.messages import add_system, is_message, read_facts
from pamer_lab.trajectory.shared.normal import is_dialect, normal
from pamer_lab.trajectory.shared.rows import first_episode, first_episodes, head
from pamer_lab.trajectory.shared.steps import add_steps
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "framework-messages"
LOOKED_AT = 400
"""Messages of a plain chat that detection looks at."""
USAGE = ("usage", "cumulative_token_usage", "metrics")


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl"):
        return False
    if document.kind == "jsonl" and _is_conversation(list(head(document))):
        return True
    plain = _plain_chat(document)
    if plain:
        return any(is_dialect(item) for item in plain[:LOOKED_AT])
    return any(find(value, _is_conversation) for value in (first_episodes(document, 3) if document.kind == "jsonl" else [document.root]))


def _plain_chat(document: Document) -> list[Any]:
    """The messages of a file that begins like a plain chat, which needs no search."""
    first = first_episode(document)
    if is_message(first):
        return document.root if isinstance(document.root, list) else head(document, LOOKED_AT)
    messages = get.items(first, "messages")
    return messages if messages and is_message(messages[0]) else []


def _is_conversation(items: list[Any]) -> bool:
    """Nearly all objects are messages, one is the agent's, and one is in a framework's own words."""
    objects = [item for item in items if isinstance(item, dict)]
    if not objects or not any(map(is_dialect, objects)):
        return False
    known = [message for item in objects if (message := normal(item)) is not None]
    return len(known) >= 0.8 * len(objects) and any(map(is_agents, known))


def read(document: Document) -> Iterator[Draft]:
    yield from read_found(document, NAME, _is_conversation, _read_one)


def _read_one(found: Found) -> Draft:
    draft = Draft(NAME, where=found.where, orphans="as_user")
    if "." in found.path or "[" in found.path:
        draft.warn(found.path, f"unknown layout: the longest list of messages was used ({len(found.messages)} items)", "guess")
    value = found.value if isinstance(found.value, dict) else {}
    read_facts(draft, {**value, "usage": get.some(value, *USAGE)})
    draft.model = draft.model or get.text(get.obj(value, "model"), "model", "id", "name")
    messages = []
    for where, item in get.placed(in_order(draft, found.messages, found.path), found.path):
        message = normal(item)
        if message is None:
            draft.unread(item if isinstance(item, str) else "item that is not a message", where)
        else:
            messages.append(message)
    add_system(draft, value, messages)
    add_steps(draft, steps_of(draft, messages, found.path))
    draft.usage = draft.usage or read_usage(get.obj(get.obj(value, "context_wrapper"), "usage") or None)
    warn_others(draft, found)
    return draft
