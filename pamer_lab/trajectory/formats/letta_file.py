"""Letta agent files (`.af`): an agent with its memory blocks and messages; version 1 is flat, version 2 holds entities.

Every message is kept, in context or not; `meta` says which ones were in context and holds the memory blocks. System messages
recur where the memory was rebuilt, and stay in their places. An approval message holds calls (the agent's) or results.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.messages import add_message
from pamer_lab.trajectory.shared.rows import one_value

NAME = "letta-agent-file"
SUFFIXES = (".af",)


def detect(document: Document) -> bool:
    root = one_value(document)
    agent = get.first(root, "agents") or root
    return (
        isinstance(agent, dict)
        and isinstance(agent.get("messages"), list)
        and bool({"core_memory", "in_context_message_ids"} & agent.keys())
    )


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    agents = root["agents"] if isinstance(root.get("agents"), list) else [root]
    for where, agent in get.placed(agents, "agents"):
        if isinstance(agent, dict):
            yield _read_one(Draft(NAME, where=where if len(agents) > 1 else "", orphans="as_user"), agent, root)


def _read_one(draft: Draft, agent: dict[str, Any], root: dict[str, Any]) -> Draft:
    for where, message in draft.each(get.items(agent, "messages"), "messages", "a message"):
        _add(draft, message, where)
    config = agent.get("llm_config")
    draft.model = get.text(config if isinstance(config, dict) else agent, "model")
    tools = get.objects(agent, "tools") or get.objects(root, "tools")
    draft.tools = read_tools([tool.get("json_schema") or tool for tool in tools])
    draft.meta = {"agent": agent.get("name"), "memory": agent.get("core_memory") or root.get("blocks")}
    draft.meta["in_context"] = get.some(agent, "in_context_message_indices", "in_context_message_ids")
    return draft


def _add(draft: Draft, message: dict[str, Any], where: str) -> None:
    returns = get.some(message, "approvals", "tool_returns")
    if message.get("role") == "approval" and not returns:
        message = {**message, "role": "assistant"}
    if message.get("role") in ("approval", "tool") and isinstance(returns, list):
        for item in returns:
            if isinstance(item, dict):
                text = get.some(item, "tool_return", "func_response", "reason") or ""
                draft.tool(get.text(item, "tool_call_id"), json_text(text), error=item.get("status") == "error", where=where)
        return
    add_message(draft, message, where)
