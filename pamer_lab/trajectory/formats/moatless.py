"""Moatless trajectories: a search tree in which each node repeats the prompt so far in Anthropic's or OpenAI's shape.

The trace is the path to the last node: the longest prompt on it, its response, and the observation after it. Nodes on other
branches are counted in a warning, and their texts kept as notes.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.messages import add_messages
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.usage import usage_in

NAME = "moatless-tree"


def detect(document: Document) -> bool:
    return "node_id" in get.first(one_value(document), "nodes")


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    draft = Draft(NAME, orphans="as_user")
    nodes = get.objects(root, "nodes")
    path = _path(nodes)
    asked = [(node, call) for node in path if (call := _completion(node))]
    if not asked:
        raise FormatError("contains no recorded completions, so there are no messages")
    if prompt := get.text(get.obj(root, "agent"), "system_prompt"):
        draft.system(prompt)
    node, last = max(asked, key=lambda pair: len(pair[1]["input"]))
    add_messages(draft, last["input"], place=f"nodes[{node.get('node_id')}].input")
    response = get.obj(last, "response")
    if "content" in response:
        add_messages(draft, [{"role": "assistant", "content": response["content"]}], place="response")
    _add_end(draft, node)
    _add_usage(draft, [call for _, call in asked])
    _add_branches(draft, nodes, path)
    metadata = get.obj(root, "metadata")
    draft.task_id = get.text(metadata, "instance_id")
    draft.model = get.text(last, "model")
    draft.meta = metadata | get.facts(root, "max_iterations", "max_cost")
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


def _completion(node: dict[str, Any]) -> dict[str, Any]:
    call = get.obj(get.obj(node, "completions"), "build_action")
    return call if get.items(call, "input") else {}


def _add_end(draft: Draft, node: dict[str, Any]) -> None:
    text = get.text(get.obj(node, "observation"), "message")
    if text and draft.open_calls():
        draft.tool("", text)
    elif text:
        draft.user(text)


def _add_usage(draft: Draft, calls: list[dict[str, Any]]) -> None:
    """Set usage per turn, if there is one completion per turn."""
    turns = [number for number, message in enumerate(draft.messages) if message.role == "assistant"]
    for number, call in zip(turns, calls, strict=False) if len(turns) == len(calls) else ():
        value = get.obj(call, "usage")
        cost = value.get("completion_cost")
        usage = usage_in(value, sent="prompt_tokens cached_tokens", given="completion_tokens", cached="cached_tokens", cost=cost)
        draft.messages[number] = msgspec.structs.replace(draft.messages[number], usage=usage)


def _add_branches(draft: Draft, nodes: list[dict[str, Any]], path: list[dict[str, Any]]) -> None:
    on_path = {id(node) for node in path}
    others = [node for node in nodes if id(node) not in on_path]
    if others:
        draft.warn("nodes", f"{len(others)} nodes are on abandoned branches; their texts are kept as notes")
    for node in others:
        draft.event("note", json_text(get.facts(node, "action", "observation", "message")), node=node.get("node_id"))
