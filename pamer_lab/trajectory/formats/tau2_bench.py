"""tau2-bench results: `simulations` beside the `info` and `tasks` they share.

The policy of `info.environment_info` is the system message, which the file holds once. Calls are flat, and a result
names its call by `id`. In some domains the simulated user calls tools too: these are not the agent's, so the call and its
result stay inside the user's text, each with an event. Taken: usage and cost per message, reward, termination, seed, trial.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.episodes import attempt
from pamer_lab.trajectory.fields import add_usage, read_number, read_openai_calls, read_thinking, read_tools, read_usage
from pamer_lab.trajectory.formats.openai_chat import text_of
from pamer_lab.trajectory.parts import read_content
from pamer_lab.trajectory.values import Usage

NAME = "tau2-bench"
FACTS = ("id", "trial", "seed", "termination_reason", "duration", "start_time", "agent_cost", "user_cost", "mode")


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl") or not isinstance(document.root, dict):
        return False
    return any(isinstance(item, dict) and isinstance(item.get("messages"), list) for item in _simulations(document.root))


def _simulations(root: dict[str, Any]) -> list[Any]:
    """The runs of a results file; a single saved run counts as one."""
    runs = root.get("simulations")
    if isinstance(runs, list):
        return runs
    return [root] if "messages" in root and "task_id" in root and "reward_info" in root else []


def read(document: Document) -> Iterator[Draft]:
    for record in document.records:
        if not isinstance(record.value, dict):
            raise FormatError("is not a results object with `simulations`", where=record.where)
        shared = _Shared(record.value)
        for number, run in enumerate(_simulations(record.value)):
            where = f"{record.where} simulations[{number}]".strip()
            yield attempt(NAME, where, lambda run=run, where=where, shared=shared: _read_one(run, where, shared))  # type: ignore[misc]


class _Shared:
    """What all simulations of one file have in common."""

    def __init__(self, root: dict[str, Any]) -> None:
        info = root.get("info")
        info = info if isinstance(info, dict) else {}
        environment, agent = info.get("environment_info"), info.get("agent_info")
        self.environment: dict[str, Any] = environment if isinstance(environment, dict) else {}
        self.agent: dict[str, Any] = agent if isinstance(agent, dict) else {}
        self.policy = text_of(self.environment, "policy")
        definitions = self.environment.get("tool_defs")
        self.tools = read_tools(list(definitions.values()) if isinstance(definitions, dict) else definitions)


def _read_one(run: Any, where: str, shared: _Shared) -> Draft:
    if not isinstance(run, dict) or not isinstance(run.get("messages"), list):
        raise FormatError("is not a simulation with a `messages` list", where=where)
    draft = Draft(NAME, where=where)
    draft.task_id = draft.question_id = text_of(run, "task_id")
    draft.model, draft.tools = text_of(shared.agent, "llm"), list(shared.tools)
    reward = run.get("reward_info")
    draft.reward = read_number(reward.get("reward")) if isinstance(reward, dict) else None
    draft.meta = {key: run.get(key) for key in FACTS}
    draft.meta |= {"domain": shared.environment.get("domain_name"), "agent": shared.agent.get("implementation")}
    policy = text_of(run, "policy") or shared.policy
    if policy:
        draft.system(policy)
    else:
        draft.warn("info.environment_info.policy", "is missing, so the trace has no system message")
    total: Usage | None = None
    for number, item in enumerate(run["messages"]):
        total = add_usage(total, _add(draft, item, f"messages[{number}]"))
    draft.usage = total
    return draft


def _add(draft: Draft, item: Any, where: str) -> Usage | None:
    """Append one message; returns the agent's usage where this is the agent's."""
    if not isinstance(item, dict):
        raise FormatError(f"is {type(item).__name__}, not a message", where=f"{draft.where} {where}")
    content = read_content(item.get("content"), where=f"{draft.where} {where}.content")
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text")
    usage = None
    match item.get("role"):
        case "assistant":
            usage = read_usage(item.get("usage"), item.get("cost"))
            calls = content.calls + read_openai_calls(item.get("tool_calls"))
            thinking = content.thought or read_thinking(item)
            draft.assistant(content.text, calls, thinking=thinking, usage=usage, images=content.images, where=where)
        case "user":
            _add_user(draft, item, content.text, where)
        case "tool" if isinstance(item.get("tool_messages"), list):
            for number, inner in enumerate(item["tool_messages"]):
                _add(draft, inner, f"{where}.tool_messages[{number}]")
        case "tool":
            _add_result(draft, item, content.text, where)
        case "system" | "developer":
            draft.system(content.text)
        case other:
            raise FormatError(f"has the role {other!r}; known: assistant, user, tool, system", where=f"{draft.where} {where}")
    return usage


def _add_user(draft: Draft, item: dict[str, Any], text: str, where: str) -> None:
    calls = read_openai_calls(item.get("tool_calls"))
    if text or not calls:
        draft.user(text)
    for call in calls:
        draft.event("note", "the user called a tool of its own", tool=call.name, arguments=call.arguments, id=call.id)
        draft.user(f"[the user runs {call.name}({call.arguments})]", name="user-tool-call")
    if calls:
        names = ", ".join(call.name for call in calls)
        draft.warn(where, f"the user's own call of {names} was kept as user text; only the agent's calls are calls")


def _add_result(draft: Draft, item: dict[str, Any], text: str, where: str) -> None:
    call_id = text_of(item, "id", "tool_call_id")
    if item.get("requestor") == "user":
        draft.event("note", "a tool of the user answered", id=call_id, error=bool(item.get("error")))
        draft.user(text or json_text(item.get("content")), name="user-tool-result")
        return
    draft.tool(call_id, text, name=text_of(item, "name"), error=bool(item.get("error")), where=where)
