"""SWE-agent `.traj` files, 0.x and 1.x: the run's `history`, with `trajectory`, `info` and `replay_config` beside it.

`history` is the conversation; `trajectory` repeats it per step (1.x with the whole prompt each time), and what it adds
becomes events (`swe_agent_steps.py`). Demonstrations are not the agent's turns: they stay in the prefix as user text, exactly as
written, with the role they were sent under as the speaker's name. Commands fenced in text stay text (0.x and
`thought_action`), and their observations are user messages, as they were sent; function calls are calls.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.episodes import attempt, episodes, first_episode
from pamer_lab.trajectory.fields import parse_json, read_usage
from pamer_lab.trajectory.formats.openai_chat import add_message, text_of
from pamer_lab.trajectory.formats.swe_agent_steps import tell_steps
from pamer_lab.trajectory.parts import read_content

NAME = "swe-agent-traj"
INSTANCE = re.compile(r"[\w.-]+__[\w.-]+-\d+")
STEP_KEYS = {"action", "observation"}


def detect(document: Document) -> bool:
    first = first_episode(document)
    if not isinstance(first, dict):
        return False
    attempts = first.get("attempts")
    if isinstance(attempts, list) and attempts:
        first = attempts[0]
    return _is_run(first)


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    history, steps = _items(value, "history"), _items(value, "trajectory")
    told = bool(history) and "role" in history[0]
    if steps and set(steps[0]) >= STEP_KEYS and (told or "response" in steps[0] or "thought" in steps[0]):
        return True
    return told and any("agent" in item or "message_type" in item for item in history[:5])


def _items(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of a list, for detection; empty where the field is no list of objects."""
    found = value.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def read(document: Document) -> Iterator[Draft]:
    named = _instance_name(document.path)
    for where, value in episodes(document):
        attempts = value.get("attempts") if isinstance(value, dict) else None
        if not isinstance(attempts, list) or not attempts:
            yield attempt(NAME, where, lambda value=value, where=where: _read_one(value, where, value, named))  # type: ignore[misc]
            continue
        for number, one in enumerate(attempts):
            place = f"{where} attempts[{number}]".strip()
            yield attempt(NAME, place, lambda one=one, place=place, value=value: _read_one(one, place, value, named))  # type: ignore[misc]


def _instance_name(path: str) -> str:
    """A benchmark's instance id, which 0.x files carry only as their name."""
    stem = PurePath(path).name.split(".traj")[0]
    return stem if INSTANCE.fullmatch(stem) else ""


def _read_one(value: Any, where: str, whole: dict[str, Any], named: str) -> Draft:
    if not _is_run(value):
        raise FormatError("is not a run with `history` or `trajectory`", where=where)
    draft = Draft(NAME, where=where, orphans="as_user")
    _read_facts(draft, value, whole)
    draft.task_id = draft.task_id or named
    history = value.get("history")
    steps = value.get("trajectory")
    steps = steps if isinstance(steps, list) else []
    if isinstance(history, list) and history:
        for number, item in enumerate(history):
            _add(draft, item, f"history[{number}]")
        tell_steps(draft, history, steps)
    else:
        _add_steps(draft, steps)
    return draft


def _read_facts(draft: Draft, value: dict[str, Any], whole: dict[str, Any]) -> None:
    info = value.get("info")
    info = info if isinstance(info, dict) else {}
    stats = info.get("model_stats")
    if isinstance(stats, dict):
        draft.usage = read_usage(stats, stats.get("instance_cost"))
        draft.meta["api_calls"] = stats.get("api_calls")
    draft.meta |= {"exit_status": info.get("exit_status"), "submission": info.get("submission"), "environment": value.get("environment")}
    config = value.get("replay_config") or whole.get("replay_config")
    config = parse_json(config) if isinstance(config, str) else config
    if isinstance(config, dict):
        agent, problem = config.get("agent"), config.get("problem_statement")
        model = agent.get("model") if isinstance(agent, dict) else None
        draft.model = text_of(model, "name") if isinstance(model, dict) else ""
        draft.task_id = text_of(problem, "id") if isinstance(problem, dict) else ""
    draft.task_id = draft.task_id or text_of(value, "instance_id") or text_of(whole, "instance_id")


def _add(draft: Draft, item: Any, where: str) -> None:
    if not isinstance(item, dict):
        raise FormatError(f"is {type(item).__name__}, not a message", where=f"{draft.where} {where}".strip())
    if item.get("is_demo"):
        content = read_content(item.get("content"), where=f"{draft.where} {where}.content".strip())
        draft.user(content.text, images=content.images, name=f"demonstration-{text_of(item, 'role')}")
        return
    ids = item.get("tool_call_ids")
    if item.get("role") == "tool" and isinstance(ids, list) and ids:
        _add_results(draft, item, [str(call_id) for call_id in ids], where)
        return
    if item.get("role") == "tool" and not item.get("tool_call_id") and not draft.open_calls():
        item = item | {"role": "user"}  # a 1.x observation of an action that was text, not a call
    if isinstance(item.get("role"), str) and item["role"] not in ("system", "user", "assistant", "tool"):
        draft.warn(where, f"role {item['role']!r} was read as user")
        item = item | {"role": "user"}
    add_message(draft, item, where)
    action, content = item.get("action"), item.get("content")
    if item.get("role") == "assistant" and isinstance(action, str) and isinstance(content, str) and not item.get("tool_calls"):
        command = action.strip()
        if command and command not in content:
            draft.event("note", command, action=command)


def _add_results(draft: Draft, item: dict[str, Any], ids: list[str], where: str) -> None:
    """One observation may answer several calls at once: the first carries the text, the others point to it."""
    first, *others = ids
    add_message(draft, item | {"tool_call_id": first}, where)
    for call_id in others:
        draft.warn(where, f"one observation answers {len(ids)} calls; the result of {call_id!r} points to the first")
        draft.tool(call_id, f"[answered together with call {first}]", where=where)


def _add_steps(draft: Draft, steps: list[Any]) -> None:
    """A file without `history`: the first step's prompt where there is one, then each response and its observation."""
    draft.warn("trajectory", "the file has no `history`; the conversation was rebuilt from the steps")
    first = steps[0] if isinstance(steps[0], dict) else {}
    prompt: list[Any] = next((first[key] for key in ("messages", "query") if isinstance(first.get(key), list)), [])
    for number, item in enumerate(prompt):
        _add(draft, item, f"trajectory[0].messages[{number}]")
    for number, step in enumerate(steps):
        where = f"trajectory[{number}]"
        if not isinstance(step, dict):
            raise FormatError(f"is {type(step).__name__}, not a step", where=f"{draft.where} {where}".strip())
        response = text_of(step, "response", "thought") or text_of(step, "action")
        add_message(draft, {"role": "assistant", "content": response, "tool_calls": step.get("tool_calls")}, where)
        observation = step.get("observation")
        if isinstance(observation, str):
            waiting = [call_id for call_id, _ in draft.open_calls()]
            if waiting:
                _add_results(draft, {"role": "tool", "content": observation}, waiting, where)
            else:
                draft.user(observation)
