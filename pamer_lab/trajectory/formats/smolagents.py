"""smolagents' memory: the task, plans and action steps, as `agent.memory.get_full_steps()` gives them.

An action step is one turn with its calls; its observations are the result, an error included. The messages that each step sent to the model
repeat the steps before it and are left out; system prompt and task come from their own steps, else from the first of those messages.
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
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.values import Image, ToolCall

NAME = "smolagents-memory"
HOLDERS = ("steps", "memory", "logs", "full_steps", "agent_memory", "succinct_steps", "intermediate_steps")


def detect(document: Document) -> bool:
    found = first_episodes(document)
    return any(_is_step(value) for value in found) or any(any(_is_step(step) for step in _steps(value)[:4]) for value in found)


def _is_step(value: Any) -> bool:
    return (
        isinstance(value, dict) and "step_number" in value and bool({"model_output", "observations", "model_output_message"} & value.keys())
    )


def _steps(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    found = next((value[key] for key in HOLDERS if isinstance(value, dict) and isinstance(value.get(key), list | dict)), None)
    return _steps(found) if found is not None else []


def read(document: Document) -> Iterator[Draft]:
    rows = list(episodes(document))
    if any(_is_step(value) for _, value in rows):
        yield attempt(NAME, "", _read_one, {"steps": [value for _, value in rows]}, "")
        return
    for where, value in rows:
        yield attempt(NAME, where, _read_one, value, where)


def _read_one(value: Any, where: str) -> Draft:
    draft = Draft(NAME, where=where, orphans="as_user")
    steps = _steps(value)
    given = {**value, "steps": None} if isinstance(value, dict) else {}
    if not any("task" in step for step in steps):
        _open(draft, given, steps)
    if prompt := get.some(given, "system_prompt"):
        draft.system(get.text(prompt, "system_prompt") or json_text(prompt))
    for place, step in get.placed(steps, "steps"):
        _add(draft, step, place)
    draft.model = get.text(given, "model", "model_id")
    draft.task_id = get.text(given, "task_id", "id", "question_id")
    return draft


def _open(draft: Draft, given: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    """The prompt of a run whose task has no step of its own."""
    sent = next((get.objects(step, "model_input_messages") for step in steps if step.get("model_input_messages")), [])
    for message in sent:
        text = content_of(draft, message.get("content"), "model_input_messages").text
        if message.get("role") == "system":
            draft.system(text)
        elif message.get("role") == "user":
            draft.user(text)
        else:
            break
    if not sent and (task := get.text(given, "task", "question", "input", "prompt")):
        draft.user(task)


def _add(draft: Draft, step: dict[str, Any], where: str) -> None:
    if "system_prompt" in step:
        draft.system(json_text(step["system_prompt"]))
    elif "task" in step:
        images = [Image("image", 0) for _ in get.items(step, "task_images")]
        draft.user("\n".join([get.text(step, "task"), *("[image: image, size not recorded]" for _ in images)]), images=images)
    elif "plan" in step:
        draft.assistant(get.text(step, "plan"), usage=read_usage(step.get("token_usage")), where=where)
    elif _is_step(step):
        _add_action(draft, step, where)
    elif "final_answer" in step or "output" in step:
        draft.event("note", json_text(get.some(step, "final_answer", "output")), what="final answer")
    else:
        draft.unread(", ".join(sorted(step))[:80] or "empty step", where)


def _add_action(draft: Draft, step: dict[str, Any], where: str) -> None:
    message = get.obj(step, "model_output_message")
    text = get.text(step, "model_output") or content_of(draft, message.get("content") or step.get("model_output"), where).text
    calls = read_calls(step.get("tool_calls") or message.get("tool_calls"))
    if not calls and (code := get.text(step, "code_action")):
        calls = [ToolCall("", "python_interpreter", json_text({"code": code}))]
    usage = read_usage(step.get("token_usage") or get.obj(message, "raw").get("usage"))
    draft.assistant(text, calls, usage=usage, where=where)
    error = step.get("error")
    said = get.text(error, "message") or (json_text(error) if error else "")
    images = [Image("image", 0) for _ in get.items(step, "observations_images")]
    shown = [get.text(step, "observations"), said, *("[image: image, size not recorded]" for _ in images)]
    answer = "\n".join(filter(None, shown))
    if not answer and step.get("action_output") is not None:
        answer = json_text(step["action_output"])
    for number, (own, name) in enumerate(draft.open_calls()):
        if number == 0 and (answer or error):
            draft.tool(own, answer, name=name, images=images, error=bool(error), where=where)
    if not calls and answer:
        draft.user(answer, images=images, name="observation")
