"""Letta agent files (`.af`): an agent with its memory blocks and messages; version 1 is flat, version 2 holds entities.

Every message is kept, in context or not; which ones were in context stands in `meta`, as do the memory blocks. System messages
recur where the memory was rebuilt, and stay in their places. An approval message holds calls (the agent's) or results.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.fields import read_tools
from pamer_lab.trajectory.formats.openai_chat import add_message
from pamer_lab.trajectory.formats.rows import text_of

NAME = "letta-agent-file"


def detect(document: Document) -> bool:
    root = document.root
    if document.kind != "json" or not isinstance(root, dict):
        return False
    first = root["agents"][0] if isinstance(root.get("agents"), list) and root["agents"] else root
    return (
        isinstance(first, dict)
        and isinstance(first.get("messages"), list)
        and ("core_memory" in first or "in_context_message_ids" in first)
    )


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    agents = root["agents"] if isinstance(root.get("agents"), list) else [root]
    for number, agent in enumerate(agents):
        if isinstance(agent, dict):
            yield _read_one(Draft(NAME, where=f"agents[{number}]" if len(agents) > 1 else "", orphans="as_user"), agent, root)


def _read_one(draft: Draft, agent: dict[str, Any], root: dict[str, Any]) -> Draft:
    messages = agent.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else []):
        where = f"messages[{number}]"
        if not isinstance(message, dict):
            raise FormatError(f"is {type(message).__name__}, not a message", where=f"{draft.where} {where}".strip())
        _add(draft, message, where)
    config = agent.get("llm_config")
    draft.model = text_of(config.get("model")) if isinstance(config, dict) else text_of(agent.get("model"))
    found = agent.get("tools") or root.get("tools")
    draft.tools = read_tools(
        [tool.get("json_schema") or tool for tool in found if isinstance(tool, dict)] if isinstance(found, list) else []
    )
    draft.meta = {"agent": agent.get("name"), "memory": agent.get("core_memory") or root.get("blocks")}
    draft.meta["in_context"] = agent.get("in_context_message_indices") or agent.get("in_context_message_ids")
    return draft


def _add(draft: Draft, message: dict[str, Any], where: str) -> None:
    returns = message.get("approvals") or message.get("tool_returns")
    if message.get("role") == "approval" and not returns:
        message = {**message, "role": "assistant"}
    if message.get("role") in ("approval", "tool") and isinstance(returns, list) and returns:
        for item in returns:
            if isinstance(item, dict):
                text = item.get("tool_return") or item.get("func_response") or item.get("reason") or ""
                draft.tool(text_of(item.get("tool_call_id")), json_text(text), error=item.get("status") == "error", where=where)
        return
    try:
        add_message(draft, message, where)
    except FormatError as error:
        raise error.at(where=f"{draft.where} {where}".strip()) from error
