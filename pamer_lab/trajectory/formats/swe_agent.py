"""SWE-agent `.traj` files, 0.x and 1.x: the run's `history`, with `trajectory`, `info` and `replay_config` next to it.

`history` is the conversation; `trajectory` repeats it per step (1.x with the complete prompt each time), and what it adds becomes events.
Demonstrations stay in the prefix as user text, unchanged, with their original role in the speaker's name. Commands fenced in text stay text
(0.x and `thought_action`), and their observations user messages, as they were sent; function calls become calls.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.messages import add_message
from pamer_lab.trajectory.shared.parts import content_of, read_content
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episode
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "swe-agent-traj"
SUFFIXES = (".traj",)
INSTANCE = re.compile(r"(?<![\w.-])[\w.-]{1,200}__[\w.-]{1,200}-\d{1,20}")
STEP_KEYS = {"action", "observation"}


def detect(document: Document) -> bool:
    first = first_episode(document)
    return _is_run(get.first(first, "attempts") or first)


def _is_run(value: Any) -> bool:
    history, steps = get.objects(value, "history"), get.objects(value, "trajectory")
    told = bool(history) and "role" in history[0]
    if steps and set(steps[0]) >= STEP_KEYS and (told or "response" in steps[0] or "thought" in steps[0]):
        return True
    return told and any("agent" in item or "message_type" in item for item in history[:5])


def read(document: Document) -> Iterator[Draft]:
    named = _instance_name(document.path)
    for where, value in episodes(document):
        attempts = get.items(value, "attempts")
        if not attempts:
            yield attempt(NAME, where, _read_one, value, where, value, named)
        for place, one in get.placed(attempts, f"{where} attempts".strip()):
            yield attempt(NAME, place, _read_one, one, place, value, named)


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
    history, steps = get.items(value, "history"), get.items(value, "trajectory")
    for place, item in draft.each(history, "history", "a message"):
        _add(draft, item, place)
    if history:
        _note_steps(draft, history, steps)
    else:
        _add_steps(draft, steps)
    return draft


def _read_facts(draft: Draft, value: dict[str, Any], whole: dict[str, Any]) -> None:
    info = get.obj(value, "info")
    stats = get.obj(info, "model_stats")
    draft.usage = read_usage(stats, stats.get("instance_cost"))
    draft.meta = get.facts(stats, "api_calls") | get.facts(info, "exit_status", "submission") | get.facts(value, "environment")
    config = get.parsed(value.get("replay_config") or whole.get("replay_config"))
    draft.model = get.text(get.obj(get.obj(config, "agent"), "model"), "name")
    problem = get.text(get.obj(config, "problem_statement"), "id")
    draft.task_id = problem or get.text(value, "instance_id") or get.text(whole, "instance_id")


def _add(draft: Draft, item: dict[str, Any], where: str) -> None:
    if item.get("is_demo"):
        content = content_of(draft, item.get("content"), f"{where}.content")
        draft.user(content.text, images=content.images, name=f"demonstration-{get.text(item, 'role')}")
        return
    if item.get("role") == "tool" and (ids := get.items(item, "tool_call_ids")):
        _add_results(draft, item, [str(call_id) for call_id in ids], where)
        return
    if item.get("role") == "tool" and not item.get("tool_call_id") and not draft.open_calls():
        item = item | {"role": "user"}  # a 1.x observation of an action that was text, not a call
    if isinstance(item.get("role"), str) and item["role"] not in ("system", "user", "assistant", "tool"):
        draft.warn(where, f"role {item['role']!r} was read as user")
        item = item | {"role": "user"}
    add_message(draft, item, where)
    action, text = item.get("action"), item.get("content")
    if item.get("role") == "assistant" and isinstance(action, str) and isinstance(text, str) and not item.get("tool_calls"):
        command = action.strip()
        if command and command not in text:
            draft.event("note", command, action=command)


def _add_results(draft: Draft, item: dict[str, Any], ids: list[str], where: str) -> None:
    """One observation may answer several calls at once: the first carries the text, the others point to it."""
    first, *others = ids
    add_message(draft, item | {"tool_call_id": first}, where)
    for call_id in others:
        draft.warn(where, f"one observation answers {len(ids)} calls; the result of {call_id!r} points to the first")
        draft.tool(call_id, f"[answered together with call {first}]", where=where)


def _add_steps(draft: Draft, steps: list[Any]) -> None:
    """Rebuild a file without `history`: the first step's prompt, if any, then each response and its observation."""
    draft.warn("trajectory", "the file has no `history`; the conversation was rebuilt from the steps")
    for where, item in draft.each(get.items(steps[0], "messages", "query"), "trajectory[0].messages", "a message"):
        _add(draft, item, where)
    for where, step in draft.each(steps, "trajectory", "a step"):
        response = get.text(step, "response", "thought", "action")
        add_message(draft, {"role": "assistant", "content": response, "tool_calls": step.get("tool_calls")}, where)
        observation = step.get("observation")
        if isinstance(observation, str):
            waiting = [call_id for call_id, _ in draft.open_calls()]
            if waiting:
                _add_results(draft, {"role": "tool", "content": observation}, waiting, where)
            else:
                draft.user(observation)


def _note_steps(draft: Draft, history: list[Any], steps: list[Any]) -> None:
    """What `trajectory` adds to `history`, as events placed by step number.

    These are answers and observations that no message holds (such as a retried answer, or the last action's observation), and messages that
    a history processor shortened before they were sent (1.x keeps the complete prompt of each step).
    """
    turns = [index for index, message in enumerate(draft.messages) if message.role == "assistant"]
    said: list[str] = []
    shortened: set[str] = set()
    for number, step in enumerate(steps):
        if not isinstance(step, dict):
            draft.warn(f"trajectory[{number}]", f"is {type(step).__name__}, not a step; left out")
            continue
        place = turns[number] if number < len(turns) else len(draft.messages)
        _note_shortened(draft, history, step, place, shortened)
        for key in ("thought", "response", "observation"):
            text = step.get(key)
            if isinstance(text, str) and text.strip() and not _is_held(draft, text.strip(), place, said):
                draft.event_at(min(place + 1, len(draft.messages)), "note", text, what=f"{key} of step {number}; no message holds it")
                said.append(text)


def _is_held(draft: Draft, text: str, place: int, said: list[str]) -> bool:
    """Whether a message or an earlier note holds the text. It is nearly always near its turn, so those messages are searched first."""
    near = draft.messages[max(place - 1, 0) : place + 3]
    everywhere = (message for message in draft.messages)
    return any(text in message.content for messages in (near, everywhere) for message in messages) or any(text in one for one in said)


def _note_shortened(draft: Draft, history: list[Any], step: dict[str, Any], place: int, known: set[str]) -> None:
    """Note messages that were sent in a different form than the history has."""
    for number, (kept, item) in enumerate(zip(history, get.items(step, "messages", "query"), strict=False)):
        if kept is item or kept == item or not isinstance(kept, dict) or not isinstance(item, dict):
            continue
        text = read_content(item.get("content"), where="content").text
        whole = read_content(kept.get("content"), where="content").text
        if text != whole and f"{number}/{text}" not in known:
            known.add(f"{number}/{text}")
            index = next((index for index, message in enumerate(draft.messages[:place]) if message.content == whole), None)
            replaced = () if index is None else ((index, index + 1),)
            draft.event_at(place, "context_edit", text, what=f"history[{number}] was sent in this form from here on", replaced=replaced)
