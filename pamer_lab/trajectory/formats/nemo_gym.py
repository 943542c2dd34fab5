"""NeMo Gym rollouts: one Responses API request and its response per line, with a reward.

What the model gave between two results is one assistant message, so parallel calls stay together; calls whose results
the agent did not record stay unanswered. `instructions` is the system message. Scalars next to the conversation go to
`meta`.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.responses_items import Items
from pamer_lab.trajectory.shared.rows import first_row, trace_rows
from pamer_lab.trajectory.shared.steps import Said, add_steps
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "openai-responses-nemo-gym"
PROBLEMS = ("problem_statement", "instruction", "problem", "question", "prompt", "task_description", "task")
"""Keys under which a rollout with an empty `input` may hold the task, best first."""


def detect(document: Document) -> bool:
    return "responses_create_params" in first_row(document)


def read(document: Document) -> Iterator[Draft]:
    for where, row in trace_rows(document):
        yield _read_one(Draft(NAME, where=where), row)


def _read_one(draft: Draft, row: dict[str, Any]) -> Draft:
    params, response = get.obj(row, "responses_create_params"), get.obj(row, "response")
    metadata = {**get.obj(row, "metadata"), **get.obj(params, "metadata")}
    items = Items(draft)
    if instructions := get.text(params, "instructions") or get.text(response, "instructions"):
        items.say(Said("system", instructions))
    _add_input(items, params.get("input"), {**row, **metadata})
    items.close()
    _add_all(items, response.get("output"), "response.output")
    add_steps(draft, items.steps)
    draft.tools = read_tools(params.get("tools")) or read_tools(response.get("tools"))
    draft.model = get.text(response, "model") or get.text(params, "model")
    draft.usage = read_usage(response.get("usage"))
    draft.reward = get.amount(row, "reward")
    agent = get.text(get.obj(row, "agent_ref"), "name")
    # With the number alone, the first tasks of all rollout files would share one question.
    numbered = f"{agent}/{row['_ng_task_index']}" if "_ng_task_index" in row else ""
    names = (get.text(source, key) for key in ("instance_id", "task_id", "task_name") for source in (row, metadata))
    draft.task_id = next(filter(None, names), numbered)
    draft.meta = {key: value for key, value in row.items() if isinstance(value, str | int | float) and key != "reward"}
    draft.meta |= {"agent": agent, "metadata": metadata}
    return draft


def _add_input(items: Items, given: Any, facts: dict[str, Any]) -> None:
    if given:
        _add_all(items, [{"role": "user", "content": given}] if isinstance(given, str) else given, "input")
        return
    key = next((key for key in PROBLEMS if isinstance(facts.get(key), str) and facts[key]), "")
    if key:
        items.say(Said("user", facts[key]))
        items.draft.warn("input", f"is empty; the task was taken from {key!r} in the metadata")
    else:
        items.draft.warn("input", "is empty, so the task is unknown")


def _add_all(items: Items, values: Any, place: str) -> None:
    if values is None:
        return
    if not isinstance(values, list):
        raise items.draft.fault(place, f"is {type(values).__name__}, not a list of items")
    for where, item in items.draft.each(values, place, "an item"):
        items.add(item, where)
