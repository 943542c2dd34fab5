"""ChatGPT's export: conversations as trees of messages.

The trace is the path that the user last saw (`current_node`); each message on another branch becomes a note. A message to a tool is a call,
and the tool's next message is its result; further ones (a browser quotes several pages) answer no call and stay separate messages.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.branches import path_to
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episode
from pamer_lab.trajectory.shared.span_attributes import nanoseconds
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.values import Image, ToolCall

NAME = "chatgpt-export"
THOUGHTS = ("thoughts", "reasoning_recap")


def detect(document: Document) -> bool:
    value = first_episode(document)
    value = get.first(value, "conversations") or value
    nodes = get.obj(value, "mapping")
    return _is_node(next(iter(nodes.values()), None)) or _is_node(get.first(value, "linear_conversation"))


def _is_node(node: Any) -> bool:
    return isinstance(node, dict) and "message" in node and ("parent" in node or "children" in node or "author" in get.obj(node, "message"))


def read(document: Document) -> Iterator[Draft]:
    for where, value in episodes(document):
        for place, one in get.placed(value["conversations"], "conversations") if get.objects(value, "conversations") else ((where, value),):
            yield attempt(NAME, place, _read_one, one, place)


def _read_one(value: Any, where: str) -> Draft:
    draft = Draft(NAME, where=where, orphans="as_user")
    nodes = {key: node for key, node in get.obj(value, "mapping").items() if isinstance(node, dict)}
    path = _path(nodes, get.text(value, "current_node")) or get.objects(value, "linear_conversation")
    if not path:
        raise FormatError("is not a conversation with a `mapping`", where=where)
    steps: list[Step] = []
    for node in path:
        _add(draft, steps, get.obj(node, "message"), get.text(node, "id"))
    shown = {id(node) for node in path}
    beside = [node for node in nodes.values() if id(node) not in shown and get.obj(node, "message")]
    steps += _branches(beside)
    draft.task_id = get.text(value, "conversation_id", "id")
    models = [get.text(get.obj(get.obj(node, "message"), "metadata"), "model_slug") for node in path]
    draft.model = next(filter(None, reversed(models)), "") or get.text(value, "default_model_slug")
    draft.meta = get.facts(value, "title", "create_time", "gizmo_id")
    add_steps(draft, steps)
    return draft


def _path(nodes: dict[str, Any], last: str) -> list[Any]:
    """The nodes from the root to the one shown last or, if the export does not name it, to the newest leaf."""
    if last not in nodes:
        leaves = [key for key, node in nodes.items() if not node.get("children")]
        last = max(leaves, key=lambda key: nanoseconds(get.obj(nodes[key], "message").get("create_time")), default="")
    return [nodes[key] for key in path_to(last, {key: get.text(node, "parent") for key, node in nodes.items()})]


def _branches(beside: list[Any]) -> list[Step]:
    """Messages on other branches, such as answers that were regenerated: one note each."""
    marks: list[Step] = []
    for node in beside:
        message = get.obj(node, "message")
        if text := _content(message)[0]:
            facts = {"what": "another branch", "node": node.get("id"), "parent": node.get("parent")}
            marks.append(Mark("note", text, facts | {"role": get.obj(message, "author").get("role")}))
    return marks


def _add(draft: Draft, steps: list[Step], message: dict[str, Any], where: str) -> None:
    if not message:
        return
    author, content = get.obj(message, "author"), get.obj(message, "content")
    text, images = _content(message)
    thinks = content.get("content_type") in THOUGHTS
    match author.get("role"):
        case "assistant":
            _add_turn(steps, message, text, images, thinks, where)
        case "tool":
            if text or images:
                steps.append(Result("", text, where, images, name=get.text(author, "name")))
        case "system":
            if text:
                steps.append(Said("system", text))
        case "user":
            if content.get("content_type") == "user_editable_context":
                steps.append(Said("system", text))
            else:
                steps.append(Said("user", text, images))
        case other:
            draft.warn(where, f"has the unknown role {other!r}; kept as a note")
            steps.append(Mark("note", text, {"role": other}))


def _add_turn(steps: list[Step], message: dict[str, Any], text: str, images: list[Image], thinks: bool, where: str) -> None:
    thought = steps.pop() if steps and isinstance(steps[-1], Turn) and steps[-1].thinking and not _speaks(steps[-1]) else None
    turn = thought if isinstance(thought, Turn) else Turn(where)
    to = get.text(message, "recipient") or "all"
    if thinks:
        turn.thinking.append(text)
    elif to != "all":
        turn.calls.append(ToolCall("", to, text))
    else:
        turn.texts.append(text)
        turn.images += images
    if _speaks(turn) or turn.thinking:
        steps.append(turn)


def _speaks(turn: Turn) -> bool:
    return bool(turn.calls or any(turn.texts) or turn.images)


def _content(message: dict[str, Any]) -> tuple[str, list[Image]]:
    """(text, images) of a message's content, whichever of its types it has."""
    content = get.obj(message, "content")
    images: list[Image] = []
    texts: list[str] = []
    for part in get.items(content, "parts"):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and "asset_pointer" in part:
            size = get.count(part, "size_bytes") or 0
            images.append(Image("image", size))
            texts.append(
                f"[image: {part['asset_pointer']}, {size:,} bytes]" if size else f"[image: {part['asset_pointer']}, size not recorded]"
            )
        else:
            texts.append(get.text(part, "text") or json_text(part))
    for thought in get.objects(content, "thoughts"):
        texts.append("\n".join(filter(None, (get.text(thought, "summary"), get.text(thought, "content")))))
    if content.get("content_type") == "user_editable_context":
        texts += [get.text(content, "user_profile"), get.text(content, "user_instructions")]
    if not texts:
        heading = " ".join(filter(None, (get.text(content, "title"), get.text(content, "url"))))
        said = get.text(content, "text", "result", "content", "model_set_context")
        texts = [heading, said] if said else [json_text(content)] if content.keys() - {"content_type", "parts"} else []
    for attached in get.objects(get.obj(message, "metadata"), "attachments"):
        texts.append(f"[file: {get.text(attached, 'name') or 'unnamed'}, {get.count(attached, 'size') or 0:,} bytes]")
    return "\n".join(text for text in texts if text), images
