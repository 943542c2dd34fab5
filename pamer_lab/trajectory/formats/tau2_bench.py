"""tau2-bench results: `simulations` next to the `info` and `tasks` they share.

The policy in `info.environment_info` is the system message; the file holds it once. Calls are flat, and a result names its
call by `id`. In some domains the simulated user also calls tools: these calls and their results become user messages, each
with an event. Also read: usage and cost per message, reward, termination, seed, trial.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_thinking, read_tools
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import attempt, first_value
from pamer_lab.trajectory.shared.usage import add_usage, read_usage
from pamer_lab.trajectory.tally import EMPTY_RESULT
from pamer_lab.trajectory.values import Usage

NAME = "tau2-bench"
FACTS = ("id", "trial", "seed", "termination_reason", "duration", "start_time", "agent_cost", "user_cost", "mode")


def detect(document: Document) -> bool:
    return any(isinstance(item, dict) and isinstance(item.get("messages"), list) for item in _simulations(first_value(document)))


def _simulations(root: Any) -> list[Any]:
    """The runs of a results file; a single saved run counts as one."""
    if not isinstance(root, dict):
        return []
    if isinstance(root.get("simulations"), list):
        return list(root["simulations"])
    return [root] if {"messages", "task_id", "reward_info"} <= root.keys() else []


def read(document: Document) -> Iterator[Draft]:
    for record in document.records:
        if not isinstance(record.value, dict):
            raise FormatError("is not a results object with `simulations`", where=record.where)
        for where, run in get.placed(_simulations(record.value), f"{record.where} simulations".strip()):
            yield attempt(NAME, where, _read_one, run, where, get.obj(record.value, "info"))


def _read_one(run: Any, where: str, info: dict[str, Any]) -> Draft:
    if not isinstance(run, dict) or not isinstance(run.get("messages"), list):
        raise FormatError("is not a simulation with a `messages` list", where=where)
    environment, agent = get.obj(info, "environment_info"), get.obj(info, "agent_info")
    draft = Draft(NAME, where=where)
    draft.task_id = draft.question_id = get.text(run, "task_id")
    draft.model = get.text(agent, "llm")
    tools = environment.get("tool_defs")
    draft.tools = read_tools(list(tools.values()) if isinstance(tools, dict) else tools)
    draft.reward = get.amount(run.get("reward_info"), "reward")
    draft.meta = get.facts(run, *FACTS)
    draft.meta |= {"domain": environment.get("domain_name"), "agent": agent.get("implementation")}
    if policy := get.text(run, "policy") or get.text(environment, "policy"):
        draft.system(policy)
    else:
        draft.warn("info.environment_info.policy", "is missing, so the trace has no system message")
    for place, item in draft.each(run["messages"], "messages", "a message"):
        draft.usage = add_usage(draft.usage, _add(draft, item, place))
    return draft


def _add(draft: Draft, item: dict[str, Any], where: str) -> Usage | None:
    """Append one message; returns the usage if it is the agent's."""
    content = content_of(draft, item.get("content"), where)
    match item.get("role"):
        case "assistant":
            usage = read_usage(item.get("usage"), item.get("cost"))
            calls = content.calls + read_calls(item.get("tool_calls"))
            thinking = content.thought or read_thinking(item)
            draft.assistant(content.text, calls, thinking=thinking, usage=usage, images=content.images, where=where)
            return usage
        case "user":
            _add_user(draft, item, content.text, where)
        case "tool" if isinstance(item.get("tool_messages"), list):
            for place, inner in draft.each(item["tool_messages"], f"{where}.tool_messages", "a message"):
                _add(draft, inner, place)
        case "tool":
            _add_result(draft, item, content.text, where)
        case "system" | "developer":
            draft.system(content.text)
        case other:
            raise draft.fault(where, f"has the role {other!r}; known: assistant, user, tool, system")
    return None


def _add_user(draft: Draft, item: dict[str, Any], text: str, where: str) -> None:
    calls = read_calls(item.get("tool_calls"))
    if text or not calls:
        draft.user(text)
    for call in calls:
        draft.event("note", "the user called a tool of its own", tool=call.name, arguments=call.arguments, id=call.id)
        draft.user(f"[the user runs {call.name}({call.arguments})]", name="user-tool-call")
    if calls:
        names = ", ".join(call.name for call in calls)
        draft.warn(where, f"the user's own call of {names} was kept as user text; only the agent's calls are calls")


def _add_result(draft: Draft, item: dict[str, Any], text: str, where: str) -> None:
    call_id = get.text(item, "id", "tool_call_id")
    if item.get("requestor") == "user":
        draft.event("note", "a tool of the user answered", id=call_id, error=bool(item.get("error")))
        if not text:
            draft.came_out_empty(EMPTY_RESULT, where)
        draft.user(text or json_text(item.get("content")), name="user-tool-result")
        return
    draft.tool(call_id, text, name=get.text(item, "name"), error=bool(item.get("error")), where=where)
