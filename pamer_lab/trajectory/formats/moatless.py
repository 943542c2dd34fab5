"""Moatless trajectories: a search tree whose nodes each repeat the whole prompt in Anthropic's or OpenAI's shape.

The trace is the path to the last node: the longest prompt on it, its response, and the last observation. Nodes on other branches
are named in a warning, with their texts as notes.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.openai_chat import add_messages
from pamer_lab.trajectory.formats.rows import number_of, text_of
from pamer_lab.trajectory.values import Usage

NAME = "moatless-tree"


def detect(document: Document) -> bool:
    root = document.root
    nodes = root.get("nodes") if document.kind == "json" and isinstance(root, dict) else None
    return isinstance(nodes, list) and bool(nodes) and isinstance(nodes[0], dict) and "node_id" in nodes[0]


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    draft = Draft(NAME, orphans="as_user")
    nodes = [node for node in root["nodes"] if isinstance(node, dict)]
    path = _path(nodes)
    asked = [(node, call) for node in path if (call := _completion(node))]
    if not asked:
        raise FormatError("holds no recorded completions, so there are no messages")
    agent, metadata = (value if isinstance(value := root.get(key), dict) else {} for key in ("agent", "metadata"))
    if text_of(agent.get("system_prompt")):
        draft.system(agent["system_prompt"])
    node, last = max(asked, key=lambda pair: len(pair[1]["input"]))
    add_messages(draft, last["input"], place=f"nodes[{node.get('node_id')}].input")
    response = last.get("response")
    if isinstance(response, dict) and "content" in response:
        add_messages(draft, [{"role": "assistant", "content": response["content"]}], place="response")
    _add_end(draft, node)
    _add_usage(draft, asked)
    _add_branches(draft, nodes, path)
    draft.task_id = text_of(metadata.get("instance_id"))
    draft.model = text_of(last.get("model"))
    draft.meta = {**metadata, "max_iterations": root.get("max_iterations"), "max_cost": root.get("max_cost")}
    yield draft


def _path(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The nodes from the root to the last one."""
    known = {json_text(node.get("node_id")): node for node in nodes}
    path: list[dict[str, Any]] = []
    node: dict[str, Any] | None = nodes[-1] if nodes else None
    while node is not None and len(path) < len(nodes):
        path.append(node)
        node = known.get(json_text(node.get("parent_id"))) if node.get("parent_id") is not None else None
    return path[::-1]


def _completion(node: dict[str, Any]) -> dict[str, Any] | None:
    completions = node.get("completions")
    call = completions.get("build_action") if isinstance(completions, dict) else None
    return call if isinstance(call, dict) and isinstance(call.get("input"), list) and call["input"] else None


def _add_end(draft: Draft, node: dict[str, Any]) -> None:
    observation = node.get("observation")
    text = text_of(observation.get("message")) if isinstance(observation, dict) else ""
    if text and draft.open_calls():
        draft.tool("", text)
    elif text:
        draft.user(text)


def _add_usage(draft: Draft, asked: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Usage per turn, where every turn has its node."""
    turns = [number for number, message in enumerate(draft.messages) if message.role == "assistant"]
    for number, (_, call) in zip(turns, asked, strict=False) if len(turns) == len(asked) else ():
        value = call.get("usage")
        if isinstance(value, dict):
            sent, given, cached = (number_of(value.get(key)) or 0 for key in ("prompt_tokens", "completion_tokens", "cached_tokens"))
            cost = value.get("completion_cost")
            usage = Usage(sent + cached, given, cached, float(cost) if isinstance(cost, int | float) else None)
            draft.messages[number] = msgspec.structs.replace(draft.messages[number], usage=usage)


def _add_branches(draft: Draft, nodes: list[dict[str, Any]], path: list[dict[str, Any]]) -> None:
    on_path = {id(node) for node in path}
    others = [node for node in nodes if id(node) not in on_path]
    if others:
        draft.warn("nodes", f"{len(others)} nodes are on branches that were left; their texts are kept as notes")
    for node in others:
        draft.event("note", json_text({key: node.get(key) for key in ("action", "observation", "message")}), node=node.get("node_id"))
