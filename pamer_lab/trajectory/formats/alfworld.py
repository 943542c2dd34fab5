"""ALFWorld rollouts: environment steps instead of messages, each with the prompt the agent saw and what it answered.

`all_trajectories` interleaves environments, one step per line: they are grouped by environment and attempt, and sorted
by step. Each prompt restates the task, because the agent was called anew at every step.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.rows import head, number_of, rows, text_of

NAME = "alfworld-openmanus"
ATTEMPT = ("batch_idx", "test_idx", "retry_idx", "env_id")


def detect(document: Document) -> bool:
    first = head(document, 1)
    if document.kind not in ("json", "jsonl") or not first:
        return False
    return {"env_id", "step", "prompt", "action"} <= first[0].keys() or _steps(first[0]) is not None


def _steps(value: dict[str, Any]) -> list[Any] | None:
    inner = value.get("trajectory")
    steps = inner.get("steps") if isinstance(inner, dict) else None
    return steps if isinstance(steps, list) and steps and isinstance(steps[0], dict) and "agent_output" in steps[0] else None


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    if not any("env_id" in row for _, row in found[:1]):
        for where, value in found:
            if (steps := _steps(value)) is not None:
                yield _read_steps(Draft(NAME, where=where if len(found) > 1 else ""), value["trajectory"], steps)
        return
    groups: dict[str, list[dict[str, Any]]] = {}
    for _, row in found:
        groups.setdefault("/".join(json_text(row.get(key)) for key in ATTEMPT), []).append(row)
    for key, group in groups.items():
        yield _read_group(Draft(NAME, where=f"environment {key}"), group)


def _read_group(draft: Draft, group: list[dict[str, Any]]) -> Draft:
    group = sorted(group, key=lambda row: number_of(row.get("step")) or 0)
    for row in group:
        draft.user(text_of(row.get("prompt")))
        draft.assistant(text_of(row.get("action")))
    last = group[-1]
    draft.task_id = text_of(last.get("gamefile"))
    draft.reward = float(any(bool(row.get("won")) for row in group))
    draft.meta = {**{key: last.get(key) for key in ATTEMPT}, "rewards": [row.get("reward") for row in group]}
    return draft


def _read_steps(draft: Draft, trajectory: dict[str, Any], steps: list[Any]) -> Draft:
    for number, step in enumerate(steps):
        state, output = (value if isinstance(value := step.get(key), dict) else {} for key in ("state", "agent_output"))
        draft.user(text_of(state.get("observation")))
        draft.assistant(text_of(output.get("raw_response")) or text_of(output.get("action")), where=f"steps[{number}]")
    draft.task_id = text_of(trajectory.get("alfworld_task_id"))
    draft.reward = float(bool(trajectory.get("success")))
    draft.meta = {"total_reward": trajectory.get("total_reward"), "length": trajectory.get("length"), "task": trajectory.get("task")}
    return draft
