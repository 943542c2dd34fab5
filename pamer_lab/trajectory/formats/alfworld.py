"""ALFWorld rollouts: environment steps instead of messages, each with the prompt the agent saw and what it answered.

`all_trajectories` interleaves environments, one step per line: they are grouped by environment and attempt, and sorted
by step. Each prompt restates the task, because every step was a new call of the agent.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import first_row, rows, trace_rows

NAME = "alfworld-openmanus"
ATTEMPT = ("batch_idx", "test_idx", "retry_idx", "env_id")


def detect(document: Document) -> bool:
    first = first_row(document)
    return {"env_id", "step", "prompt", "action"} <= first.keys() or _has_steps(first)


def _has_steps(value: dict[str, Any]) -> bool:
    return "agent_output" in get.first(get.obj(value, "trajectory"), "steps")


def read(document: Document) -> Iterator[Draft]:
    if "env_id" not in first_row(document):
        for where, value in trace_rows(document):
            if _has_steps(value):
                yield _read_steps(Draft(NAME, where=where), value["trajectory"])
        return
    groups: dict[str, list[dict[str, Any]]] = {}
    for _, row in rows(document):
        groups.setdefault("/".join(json_text(row.get(key)) for key in ATTEMPT), []).append(row)
    for key, group in groups.items():
        yield _read_group(Draft(NAME, where=f"environment {key}"), group)


def _read_group(draft: Draft, group: list[dict[str, Any]]) -> Draft:
    group = sorted(group, key=lambda row: get.count(row, "step") or 0)
    for row in group:
        draft.user(get.text(row, "prompt"))
        draft.assistant(get.text(row, "action"))
    draft.task_id = get.text(group[-1], "gamefile")
    draft.reward = float(any(row.get("won") for row in group))
    draft.meta = {**get.facts(group[-1], *ATTEMPT), "rewards": [row.get("reward") for row in group]}
    return draft


def _read_steps(draft: Draft, trajectory: dict[str, Any]) -> Draft:
    for where, step in get.placed(trajectory["steps"], "steps"):
        draft.user(get.text(get.obj(step, "state"), "observation"))
        draft.assistant(get.text(get.obj(step, "agent_output"), "raw_response", "action"), where=where)
    draft.task_id = get.text(trajectory, "alfworld_task_id")
    draft.reward = float(bool(trajectory.get("success")))
    draft.meta = get.facts(trajectory, "total_reward", "length", "task")
    return draft
