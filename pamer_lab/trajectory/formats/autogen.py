"""AutoGen 0.4 and later: AgentChat messages (typed events with a `source`) and saved states of agents and teams.

Turns of all agents are assistant messages with the agent's name; what the user proxy said becomes user messages. A saved team
gives one trace per agent, because each agent keeps its own context.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episodes
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.shared.vocabulary import call_of

NAME = "autogen"
CONTEXT = {"SystemMessage", "UserMessage", "AssistantMessage", "FunctionExecutionResultMessage"}
EVENTS = {"TextMessage", "ToolCallRequestEvent", "ToolCallExecutionEvent", "ToolCallSummaryMessage", "ThoughtEvent", "MultiModalMessage"}
EVENTS |= {"HandoffMessage", "StopMessage", "MemoryQueryEvent", "StructuredMessage", "UserInputRequestedEvent"}
USERS = ("user", "user_proxy", "human", "UserProxy", "User")


def detect(document: Document) -> bool:
    found = first_episodes(document)
    return any(_contexts(value) for value in found) or _are_messages([value for value in found if isinstance(value, dict)])


def _are_messages(values: list[Any]) -> bool:
    kinds = {get.text(value, "type") for value in values if isinstance(value, dict) and "content" in value}
    return bool(kinds & (EVENTS | CONTEXT)) and len(kinds - EVENTS - CONTEXT) <= len(kinds & (EVENTS | CONTEXT))


def _contexts(value: Any, name: str = "", depth: int = 0) -> list[tuple[str, list[Any]]]:
    """(agent, messages) of every context in a saved state or a task's result."""
    found: list[tuple[str, list[Any]]] = []
    if not isinstance(value, dict) or depth > 8:
        return found
    for key in ("messages", "message_thread", "chat_history"):
        if isinstance(messages := value.get(key), list) and _are_messages(messages[:6]):
            found.append((name, messages))
    for key, inner in value.items():
        if isinstance(inner, dict):
            own = key if key not in ("agent_state", "llm_context", "agent_states", "state", "inner_team_state") else name
            found += _contexts(inner, own.partition("/")[0], depth + 1)
    return found


def read(document: Document) -> Iterator[Draft]:
    rows = list(episodes(document))
    if _are_messages([value for _, value in rows[:20]]):
        yield attempt(NAME, "", _read_one, [value for _, value in rows], "", "")
        return
    for where, value in rows:
        for agent, messages in _contexts(value):
            if any(
                get.text(message, "type") not in ("UserMessage", "TextMessage") or get.text(message, "source") not in USERS
                for message in messages
            ):
                yield attempt(NAME, where, _read_one, messages, where, agent)


def _read_one(messages: list[Any], where: str, agent: str) -> Draft:
    draft = Draft(NAME, where=where, orphans="as_user")
    steps: list[Step] = []
    for place, message in draft.each(messages, "messages", "a message"):
        _add(draft, steps, message, place)
    draft.meta = {"agent": agent}
    add_steps(draft, steps)
    return draft


def _add(draft: Draft, steps: list[Step], message: dict[str, Any], where: str) -> None:
    kind, source, content = get.text(message, "type"), get.text(message, "source"), message.get("content")
    usage = read_usage(message.get("models_usage"))
    match kind:
        case "SystemMessage":
            steps.append(Said("system", json_text(content)))
        case "ToolCallRequestEvent":
            turn = _turn(steps, where, source)
            turn.calls += read_calls(content)
            turn.usage = usage or turn.usage
        case "AssistantMessage" if isinstance(content, list):
            steps.append(Turn(where, calls=[call_of(call) for call in content if isinstance(call, dict)], name=source))
            steps[-1].thinking += [thought] if (thought := get.text(message, "thought")) else []  # type: ignore[union-attr]
        case "FunctionExecutionResultMessage" | "ToolCallExecutionEvent":
            for result in get.objects(message, "content"):
                own, failed = get.text(result, "call_id"), result.get("is_error") is True
                steps.append(Result(own, get.text(result, "content"), where, error=failed, name=get.text(result, "name")))
        case "ThoughtEvent":
            _turn(steps, where, source, new=True).thinking.append(get.text(message, "content"))
        case "ToolCallSummaryMessage":
            steps.append(Mark("note", json_text(content), {"what": "summary of tool calls", "source": source}))
        case "MemoryQueryEvent":
            steps.append(Mark("memory_read", json_text(content), {"source": source}))
        case "UserMessage" | "UserInputRequestedEvent":
            found = content_of(draft, content, where)
            steps.append(Said("user", found.text, found.images, source if source not in USERS else ""))
        case _ if source in USERS:
            found = content_of(draft, content, where)
            steps.append(Said("user", found.text, found.images))
        case _ if kind in EVENTS | CONTEXT or isinstance(content, str):
            found = content_of(draft, content if isinstance(content, str | list) else json_text(content), where)
            turn = _turn(steps, where, source)
            turn.add(found)
            turn.usage = usage or turn.usage
        case _:
            draft.unread(kind or "message without a type", where)


def _turn(steps: list[Step], where: str, name: str, new: bool = False) -> Turn:
    """The open turn if it holds only thoughts, otherwise a new one."""
    last = steps[-1] if steps else None
    if not new and isinstance(last, Turn) and last.name == name and last.thinking and not last.texts and not last.calls:
        return last
    steps.append(Turn(where, name=name))
    return steps[-1]  # type: ignore[return-value]
