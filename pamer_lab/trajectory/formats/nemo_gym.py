"""NeMo Gym rollouts: one Responses API request and its response per line, with a reward.

What the model gave between two results is one assistant message, so parallel calls stay together; calls whose results
the agent did not record stay unanswered. `instructions` is the system message. Scalars beside the conversation go to
`meta`.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.fields import read_tools, read_usage
from pamer_lab.trajectory.formats.responses_items import Items
from pamer_lab.trajectory.formats.rows import head, rows, text_of
from pamer_lab.trajectory.formats.steps import Said, add_steps

NAME = "openai-responses-nemo-gym"
PROBLEMS = ("problem_statement", "instruction", "problem", "question", "prompt", "task_description", "task")
"""Keys under which a rollout with an empty `input` may hold the task, best first."""


def detect(document: Document) -> bool:
    first = head(document, 1)
    return document.kind in ("json", "jsonl") and bool(first) and "responses_create_params" in first[0]


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    for where, row in found:
        yield _read_one(row, where if len(found) > 1 else "")


def _read_one(row: dict[str, Any], where: str) -> Draft:
    draft = Draft(NAME, where=where)
    params, response = _object(row.get("responses_create_params")), _object(row.get("response"))
    metadata = {**_object(row.get("metadata")), **_object(params.get("metadata"))}
    items = Items(draft)
    if instructions := text_of(params.get("instructions") or response.get("instructions")):
        items.say(Said("system", instructions))
    _add_input(items, params.get("input"), {**row, **metadata})
    items.close()
    _add_all(items, response.get("output"), "response.output")
    add_steps(draft, items.steps)
    draft.tools = read_tools(params.get("tools")) or read_tools(response.get("tools"))
    draft.model = text_of(response.get("model") or params.get("model"))
    draft.usage = read_usage(response.get("usage"))
    reward = row.get("reward")
    draft.reward = float(reward) if isinstance(reward, int | float) else None
    names = (source.get(key) for key in ("instance_id", "task_id", "task_name") for source in (row, metadata))
    agent = text_of(_object(row.get("agent_ref")).get("name"))
    # The number alone would join the first task of every rollout file to one question.
    numbered = f"{agent}/{row['_ng_task_index']}" if "_ng_task_index" in row else ""
    draft.task_id = next((text_of(name) for name in names if name), "") or numbered
    draft.meta = {key: value for key, value in row.items() if isinstance(value, str | int | float) and key != "reward"}
    draft.meta["agent"] = agent
    draft.meta["metadata"] = metadata
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
        items.draft.warn("input", "is empty, so the task is not known")


def _add_all(items: Items, values: Any, place: str) -> None:
    if values is None:
        values = []
    if not isinstance(values, list):
        raise FormatError(f"is {type(values).__name__}, not a list of items", where=f"{items.draft.where} {place}".strip())
    for number, item in enumerate(values):
        if isinstance(item, dict):
            items.add(item, f"{place}[{number}]")
        else:
            raise FormatError(f"is {type(item).__name__}, not an item", where=f"{items.draft.where} {place}[{number}]".strip())


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
