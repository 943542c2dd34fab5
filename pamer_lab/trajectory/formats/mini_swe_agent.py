"""mini-swe-agent: `.traj.json` of format 1.x, and the older bare list of messages.

Format 1.x is OpenAI chat with `extra` on each message: `extra.response` holds the usage of a call, `extra.cost` its cost. The
message with the role `exit` closes the run and was never sent, so it becomes an event. Older files and text-only models put
the command into a fenced block and the result into a user message; both are kept as they are.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.messages import add_message, is_message
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import attempt, first_episode, one_value, read_each
from pamer_lab.trajectory.shared.usage import add_usage, priced, read_usage
from pamer_lab.trajectory.values import Usage

NAME = "mini-swe-agent"
MARKS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MICRO_SWE_AGENT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
"""Phrases in its system or task prompt that distinguish the older bare list from other chats."""


def detect(document: Document) -> bool:
    first, root = first_episode(document), one_value(document)
    if isinstance(first, dict) and isinstance(first.get("messages"), list):
        named = str(first.get("trajectory_format", "")).startswith("mini-swe-agent")
        return named or (bool({"mini_version", "exit_status"} & get.obj(first, "info").keys()) and _is_legacy(first["messages"]))
    return isinstance(root, list) and _is_legacy(root)


def _is_legacy(messages: list[Any]) -> bool:
    if not messages or not is_message(messages[0]):
        return False
    if isinstance(messages[-1], dict) and messages[-1].get("role") == "exit":
        return True
    opening = [get.text(item, "content") for item in messages[:2]]
    return any(mark in text for text in opening for mark in MARKS)


def read(document: Document) -> Iterator[Draft]:
    if isinstance(document.root, list) and is_message(first_episode(document)):
        yield attempt(NAME, "", _read_one, {"messages": document.root}, "")
    else:
        yield from read_each(document, NAME, _read_one)


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise FormatError("is not a run with `messages`", where=where)
    draft = Draft(NAME, where=where)
    info = get.obj(value, "info")
    model = get.obj(get.obj(info, "config"), "model")
    draft.task_id = get.text(value, "instance_id") or get.text(info, "instance_id")
    draft.model, draft.tools = get.text(model, "model_name"), read_tools(model.get("tools"))
    draft.meta = get.facts(info, "exit_status", "submission", "mini_version", "model_stats")
    draft.meta["trajectory_format"] = value.get("trajectory_format")
    for place, item in draft.each(value["messages"], "messages", "a message"):
        draft.usage = add_usage(draft.usage, _add(draft, item, place))
    if draft.usage:
        draft.usage = priced(draft.usage, get.amount(info.get("model_stats"), "instance_cost"))
    return draft


def _add(draft: Draft, item: dict[str, Any], where: str) -> Usage | None:
    """Append one message; returns the usage of the call that gave it."""
    extra = get.obj(item, "extra")
    if item.get("role") == "exit":
        text = content_of(draft, item.get("content"), f"{where}.content").text
        draft.event("note", text, what="exit", exit_status=extra.get("exit_status"), traceback=extra.get("traceback") or None)
        draft.meta["exit_status"] = draft.meta.get("exit_status") or extra.get("exit_status")
        return None
    add_message(draft, item, where)
    response = extra.get("response")
    if item.get("role") != "assistant" or not isinstance(response, dict):
        return None
    usage = read_usage(response.get("usage"), extra.get("cost"))
    if usage:
        draft.messages[-1] = msgspec.structs.replace(draft.messages[-1], usage=usage)
    draft.model = draft.model or get.text(response, "model")
    return usage
