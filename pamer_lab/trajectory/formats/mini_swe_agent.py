"""mini-swe-agent: `.traj.json` of format 1.x, and the older bare list of messages.

Format 1.x is OpenAI chat with `extra` beside each message: usage and cost of a call stand in `extra.response` and
`extra.cost`. The message with the role `exit` closes the run and was never sent, so it becomes an event. Older files and
text-only models put the command into a fenced block and the result into a user message: they stay so.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.episodes import attempt, first_episode, read_each
from pamer_lab.trajectory.fields import add_usage, read_tools, read_usage
from pamer_lab.trajectory.formats.openai_chat import add_message, is_message, text_of
from pamer_lab.trajectory.parts import read_content
from pamer_lab.trajectory.values import Usage

NAME = "mini-swe-agent"
MARKS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MICRO_SWE_AGENT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
"""Words of its system or task prompt, by which the older bare list is told from any other chat."""


def detect(document: Document) -> bool:
    first = first_episode(document)
    if isinstance(first, dict) and str(first.get("trajectory_format", "")).startswith("mini-swe-agent"):
        return isinstance(first.get("messages"), list)
    if isinstance(first, dict) and isinstance(first.get("messages"), list):
        info = first.get("info")
        return isinstance(info, dict) and ("mini_version" in info or "exit_status" in info) and _is_legacy(first["messages"])
    return document.kind == "json" and isinstance(document.root, list) and _is_legacy(document.root)


def _is_legacy(messages: list[Any]) -> bool:
    if not messages or not is_message(messages[0]):
        return False
    if isinstance(messages[-1], dict) and messages[-1].get("role") == "exit":
        return True
    opening = [item.get("content") for item in messages[:2] if isinstance(item, dict)]
    return any(mark in text for text in opening if isinstance(text, str) for mark in MARKS)


def read(document: Document) -> Iterator[Draft]:
    if isinstance(document.root, list) and is_message(first_episode(document)):
        yield attempt(NAME, "", lambda: _read_one({"messages": document.root}, ""))
    else:
        yield from read_each(document, NAME, _read_one)


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise FormatError("is not a run with `messages`", where=where)
    draft = Draft(NAME, where=where)
    _read_facts(draft, value)
    total: Usage | None = None
    for number, item in enumerate(value["messages"]):
        usage = _add(draft, item, f"messages[{number}]")
        total = add_usage(total, usage)
    stats = draft.meta.get("model_stats")
    cost = stats.get("instance_cost") if isinstance(stats, dict) else None
    draft.usage = msgspec.structs.replace(total, cost_usd=float(cost)) if total and isinstance(cost, int | float) else total
    return draft


def _read_facts(draft: Draft, value: dict[str, Any]) -> None:
    info = value.get("info")
    info = info if isinstance(info, dict) else {}
    draft.task_id = text_of(value, "instance_id") or text_of(info, "instance_id")
    draft.meta = {key: info.get(key) for key in ("exit_status", "submission", "mini_version", "model_stats")}
    draft.meta["trajectory_format"] = value.get("trajectory_format")
    config = info.get("config")
    model = config.get("model") if isinstance(config, dict) else None
    if isinstance(model, dict):
        draft.model = text_of(model, "model_name")
        draft.tools = read_tools(model.get("tools"))


def _add(draft: Draft, item: Any, where: str) -> Usage | None:
    if not isinstance(item, dict):
        raise FormatError(f"is {type(item).__name__}, not a message", where=f"{draft.where} {where}".strip())
    extra = item.get("extra")
    extra = extra if isinstance(extra, dict) else {}
    if item.get("role") == "exit":
        text = read_content(item.get("content"), where=f"{where}.content").text
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
    draft.model = draft.model or text_of(response, "model")
    return usage
