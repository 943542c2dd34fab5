"""Messages of frameworks with their own names for role and content: LlamaIndex, Semantic Kernel, Microsoft's Agent Framework,
Haystack, Mastra, Agno, Zed threads, lists of ADK events, and items of OpenAI's Responses API (Agents SDK sessions, response dumps).

The conversation is the longest such list in each record, wherever the file keeps it. `normal` first renames a message's fields to ours.
Invariant: an object that no rule recognises as a message gives None, and no field that carries text is dropped.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import is_item, steps_of
from pamer_lab.trajectory.shared.finding import Found, find, in_order, read_found, warn_others
from pamer_lab.trajectory.shared.growing import is_agents
from pamer_lab.trajectory.shared.messages import add_system, is_message, read_facts
from pamer_lab.trajectory.shared.rows import first_episode, first_episodes, head
from pamer_lab.trajectory.shared.steps import add_steps
from pamer_lab.trajectory.shared.usage import BESIDE, read_usage
from pamer_lab.trajectory.shared.vocabulary import CALL_IDS, TYPES, calls_beside, read_id, role_of

NAME = "framework-messages"
LOOKED_AT = 400
"""How many messages of a plain chat detection looks at."""
USAGE = ("usage", "cumulative_token_usage", "metrics")
ROLES = ("role", "_role", "author", "sender")
CONTENT = ("content", "_content", "contents", "contentParts", "items", "blocks", "parts", "segments", "text", "message")
OWN_CONTENT = {"_content", "contents", "contentParts", "items", "blocks", "segments"}
"""Content fields that the chat readers do not know."""
KEPT = (
    "name",
    "reasoning",
    "thinking_trace",
    "reasoning_content",
    "thinking",
    "is_error",
    "isError",
    "metadata",
    "meta",
    "response_metadata",
    *BESIDE,
)


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
    """At least 80 % of the objects are messages, one of them the agent's, and one uses a framework's own field names."""
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


def normal(given: Any) -> dict[str, Any] | None:
    """The message with our field names; an item of the Responses API is returned unchanged; None if it is not a message."""
    if not isinstance(given, dict):
        return None
    value = _untagged(given)
    if is_item(value) and not isinstance(value.get("role"), dict):
        return value
    key, content = _content(value)
    role = role_of(get.text(content, "role")) or speaker(value)
    if not role:
        return None
    if isinstance(content, dict):
        key, content = next(((name, content[name]) for name in ("parts", "content", "text") if name in content), (key, content))
    extra = get.obj(value, "additional_kwargs")
    message = {name: value[name] for name in KEPT if value.get(name) is not None} | {"role": role}
    if key == "parts" and not any(set(TYPES) & part.keys() for part in content if isinstance(part, dict)):
        return message | {"parts": content}  # Gemini's parts have no types
    if calls := calls_beside(value) or calls_beside(extra):
        message["tool_calls"] = calls
    if own := read_id(value, *CALL_IDS[:-1]) or read_id(extra, *CALL_IDS[:-1]):
        message["tool_call_id"] = own
    held = value.get("tool_results")
    results = [{**one, "type": "tool_result"} for one in (held.values() if isinstance(held, dict) else held or ()) if isinstance(one, dict)]
    message["content"] = [*get.as_list(content if content is not None else []), *results] if results else content
    return message


def is_dialect(value: Any) -> bool:
    """Whether a message is one that the chat readers would misread."""
    if not isinstance(value, dict):
        return False
    if _untagged(value) is not value or ("role" not in value and is_item(value)):
        return True
    if "_role" in value or isinstance(value.get("role"), dict):
        return True
    content = value.get("content")
    return (content is None and any(get.objects(value, key) for key in OWN_CONTENT)) or (
        isinstance(content, dict) and isinstance(content.get("parts"), list)
    )


def speaker(value: dict[str, Any]) -> str:
    """Our name for the speaker, empty if unknown; the role may be an object that holds its name."""
    for key in ROLES:
        given = value.get(key)
        if role := role_of(get.text(given, "role", "value", "Label", "label") if isinstance(given, dict) else given):
            return role
    return ""


def _untagged(value: dict[str, Any]) -> dict[str, Any]:
    """A message without its wrapper: `{"User": {...}}` (a Rust enum, tagged with the role), Grok's `response`, LM Studio's `versions`."""
    tag, inner = next(iter(value.items()), ("", None))
    if len(value) == 1 and isinstance(inner, dict) and tag[:1].isupper() and role_of(tag):
        return {"role": tag, **inner}
    if isinstance(answer := value.get("response"), dict) and "sender" in answer and "message" in answer:
        return answer
    versions = get.objects(value, "versions")
    if versions and "currentlySelected" in value:
        chosen = versions[min(get.count(value, "currentlySelected") or 0, len(versions) - 1)]
        parts = [part for step in get.objects(chosen, "steps") for part in get.items(step, "content")]
        return {**chosen, "content": parts} if parts else chosen
    return value


def _content(value: dict[str, Any]) -> tuple[str, Any]:
    """(name, content) of the first content field that is not empty."""
    held = [(key, value[key]) for key in CONTENT if value.get(key) is not None]
    return next((pair for pair in held if pair[1]), held[0] if held else ("", None))
