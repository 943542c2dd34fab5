"""Exports of Open WebUI and LibreChat: chats as trees of messages that name their parents.

The trace is the path that was shown last; every message of another branch becomes a note. What an answer holds besides text (thoughts,
calls with their outputs) is in its parts, or in `output` as items of the Responses API; HTML in a text stays text.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.branches import path_to
from pamer_lab.trajectory.shared.dialects import steps_of
from pamer_lab.trajectory.shared.ordered import ordered_steps
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episodes
from pamer_lab.trajectory.shared.steps import Mark, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import usage_beside
from pamer_lab.trajectory.shared.vocabulary import role_of

NAME = "chat-tree"
PARENT = ("parentId", "parentMessageId")
MOST_NODES = 100_000


class _Tree(NamedTuple):
    nodes: dict[str, dict[str, Any]]
    last: str
    """The message shown last."""


def detect(document: Document) -> bool:
    return any(_tree(value) for value in first_episodes(document, 5))


def read(document: Document) -> Iterator[Draft]:
    for where, value in episodes(document):
        yield attempt(NAME, where, _read_one, value, where)


def _tree(value: Any) -> _Tree | None:
    """The messages of a chat by id; None if the value is not such a chat."""
    history = get.obj(get.obj(value, "chat") or value, "history")
    if "currentId" in history:
        nodes = {key: node for key, node in get.obj(history, "messages").items() if isinstance(node, dict) and "role" in node}
        return _Tree(nodes, get.text(history, "currentId")) if nodes else None
    if not {"messageId", "parentMessageId", "isCreatedByUser"} <= get.first(value, "messages").keys():
        return None
    nodes = {get.text(node, "messageId"): node for node in _flattened(get.objects(value, "messages"))}
    return _Tree(nodes, next(reversed(nodes)))


def _flattened(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Messages and their `children`, each parent before its children."""
    waiting = nodes[::-1]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        waiting += get.objects(node, "children")[::-1]


def _read_one(value: Any, where: str) -> Draft:
    tree = _tree(value)
    if tree is None:
        raise FormatError("is not a chat with a tree of messages like the ones before it", where=where)
    draft = Draft(NAME, where=where, orphans="as_user")
    path = path_to(tree.last, {key: get.text(node, *PARENT) for key, node in tree.nodes.items()})
    steps: list[Step] = []
    for key in path:
        steps += _steps(draft, tree.nodes[key], key)
    shown = set(path)
    for key, node in tree.nodes.items():
        if key not in shown:
            text = content_of(draft, _said(node), key).words
            steps.append(Mark("note", text, {"what": "another branch", "node": key, "role": _role(draft, node, key)}))
    draft.task_id = get.text(value, "id", "conversationId")
    draft.model = next((model for key in reversed(path) if (model := get.text(tree.nodes[key], "model"))), "")
    draft.meta = get.facts(value, "title", "created_at", "endpoint", "exportAt")
    add_steps(draft, steps)
    return draft


def _steps(draft: Draft, node: dict[str, Any], where: str) -> list[Step]:
    role = _role(draft, node, where)
    if role != "assistant":
        content = content_of(draft, _said(node), where)
        content.texts += [
            f"[file: {get.text(file, 'name', 'filename') or 'unnamed'}, size not recorded]" for file in get.objects(node, "files")
        ]
        return [Said("system" if role == "system" else "user", content.text, content.images)]
    items = get.objects(node, "output")
    found = steps_of(draft, items, where) if items else ordered_steps(draft, get.as_list(_said(node)), where)
    turns = [step for step in found if isinstance(step, Turn)]
    if turns and turns[-1].usage is None:
        turns[-1].usage = usage_beside(node)
    return found


def _said(node: dict[str, Any]) -> Any:
    """The content of a message: its parts if it has any, otherwise its text."""
    content = node.get("content")
    return content if content else node.get("text") or ""


def _role(draft: Draft, node: dict[str, Any], where: str) -> str:
    if isinstance(by_user := node.get("isCreatedByUser"), bool):
        return "user" if by_user else "assistant"
    role = role_of(node.get("role"))
    if role not in ("assistant", "user", "system"):
        draft.warn(where, f"has the unknown role {node.get('role')!r}; kept as the user's")
    return role or "user"
