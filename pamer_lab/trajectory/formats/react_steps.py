"""Runs as lists of steps with a thought, an action and an observation in separate fields (ReAct loops, DSPy, web agents).

A step is one turn. Its action becomes a call: a tool's name and arguments or, for a line of text, a call named `action`. The task is the
text next to the list. Invariant: fields of a step that no rule reads are named in a warning.
"""

import re
from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import output_content
from pamer_lab.trajectory.shared.rewards import reward_of
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episodes
from pamer_lab.trajectory.shared.usage import usage_beside
from pamer_lab.trajectory.shared.vocabulary import call_of
from pamer_lab.trajectory.values import ToolCall

NAME = "react-steps"
HOLDERS = "steps trajectory trajectories history actions turns rounds scratchpad intermediate_steps".split()
THOUGHTS = ("thinking", "reasoning", "reasoning_content")
SAID = ("response", "model_output", "llm_output", "message", "thought", "rationale", "plan", "reflection", "answer")
"""The next prompt of a ReAct loop repeats its thoughts, so they are the turn's text, not thinking."""
TOOLS = ("tool_name", "tool", "action_name", "action_type")
ARGUMENTS = (
    "tool_args",
    "tool_input",
    "action_input",
    "action_args",
    "action_params",
    "arguments",
    "args",
    "parameters",
    "params",
    "input",
)
ACTIONS = ("action", "command", "code", "tool_call")
OBSERVATIONS = ("observation", "observations", "obs", "tool_output", "tool_result", "tool_response", "action_result", "result", "output")
TASKS = ("task", "question", "query", "goal", "instruction", "intent", "prompt", "problem", "problem_statement", "input")
SILENT = frozenset("step step_id step_number index id timestamp time duration error done reward success info metadata".split())
TAKEN = {*THOUGHTS, *SAID, *TOOLS, *ARGUMENTS, *ACTIONS, *OBSERVATIONS, *SILENT, "usage", "metrics", "token_usage"}
NUMBERED = re.compile(r"\A(\w+?)_(\d{1,6})")


def detect(document: Document) -> bool:
    return any(_steps(value)[1] for value in first_episodes(document, 5))


def _steps(value: Any) -> tuple[str, list[dict[str, Any]]]:
    """(field, steps) of a run; both empty if it has none."""
    for key in HOLDERS if isinstance(value, dict) else ():
        held = value.get(key)
        found = _numbered(held) if isinstance(held, dict) else get.objects(value, key)
        acting = [step for step in found if (any(step.get(name) for name in (*TOOLS, *ACTIONS)) and "role" not in step)]
        observing = [step for step in found if any(step.get(name) is not None for name in OBSERVATIONS)]
        if acting and observing and len(acting) * 2 >= len(found) and isinstance(get.some(acting[0], *TOOLS, *ACTIONS), str | dict):
            return key, found
    return "", []


def _numbered(held: dict[str, Any]) -> list[dict[str, Any]]:
    """DSPy's trajectory, one object with `thought_0`, `tool_name_0` and so on, as steps."""
    steps: dict[int, dict[str, Any]] = {}
    for key, value in held.items():
        if match := NUMBERED.fullmatch(key):
            steps.setdefault(int(match[2]), {})[match[1]] = value
    return [steps[number] for number in sorted(steps)]


def read(document: Document) -> Iterator[Draft]:
    for where, value in episodes(document):
        yield attempt(NAME, where, _read_one, value, where)


def _read_one(value: Any, where: str) -> Draft:
    draft = Draft(NAME, where=where, orphans="as_user")
    key, steps = _steps(value)
    if task := get.text(value, *TASKS) or get.text(get.obj(value, *TASKS), "question", "instruction", "description", "text"):
        draft.user(task)
    for place, step in draft.each(steps, key, "a step"):
        calls = _calls(step)
        draft.assistant(get.text(step, *SAID), calls, thinking=get.text(step, *THOUGHTS), usage=usage_beside(step), where=place)
        seen = next((step[name] for name in OBSERVATIONS if step.get(name) is not None), None)
        if seen is None and not step.get("error"):
            continue
        output = output_content(draft, seen if seen is not None else step["error"], place)
        failed = bool(step.get("error")) or step.get("success") is False
        if calls:
            draft.tool("", output.text, images=output.images, error=failed, where=place)
        else:
            draft.user(output.text, images=output.images, name="observation")
    if unused := {name for step in steps for name in step} - TAKEN:
        draft.warn(key, f"fields of steps that were left out: {', '.join(sorted(unused)[:20])}")
    final = get.text(value, "answer", "final_answer", "final_output", "output")
    if final and not any(final in message.content for message in draft.messages if message.role == "assistant"):
        draft.event("note", final, what="the run's answer, outside its steps")
    draft.model = get.text(value, "model", "model_name")
    draft.task_id = get.text(value, "task_id", "id", "instance_id")
    draft.reward = reward_of(value)
    draft.usage = usage_beside(value) if isinstance(value, dict) else None
    return draft


def _calls(step: dict[str, Any]) -> list[ToolCall]:
    action = next((step[name] for name in ACTIONS if step.get(name)), None)
    name = next((step[key] for key in TOOLS if isinstance(step.get(key), str) and step[key]), "")
    if isinstance(action, dict):
        call = call_of({**action, **({"name": name} if name else {})})
        return (
            [call] if call.name else [ToolCall(call.id, get.text(action, "type", "action_type", "action") or "action", json_text(action))]
        )
    given = next((step[key] for key in ARGUMENTS if step.get(key) is not None), None)
    if name or (given is not None and isinstance(action, str)):
        return [ToolCall("", name or str(action), json_text(given if given is not None else {"action": action} if action else None))]
    return [ToolCall("", "action", json_text({"action": action}))] if action else []
