"""OpenAgents' recorder: one object with a prompt and a flat list of steps.

What the model did between two results is one turn. Calls and results are paired by `tool_id`. A status that says it is
compacting is a compaction event. Results were shortened by the recorder itself.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.rows import number_of, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "openagents-recorder"
TYPES = ("system_init", "system_status", "assistant", "thinking", "tool_call", "tool_result", "user")


def detect(document: Document) -> bool:
    root = document.root
    steps = root.get("steps") if document.kind == "json" and isinstance(root, dict) else None
    return (
        isinstance(steps, list) and bool(steps) and isinstance(steps[0], dict) and steps[0].get("type") in TYPES and "step_id" in steps[0]
    )


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    draft = Draft(NAME)
    steps: list[Step] = [Said("user", root["prompt"])] if text_of(root.get("prompt")) else []
    turn: Turn | None = None
    for number, step in enumerate(root["steps"]):
        if not isinstance(step, dict):
            draft.warn(f"steps[{number}]", "is not an object; left out")
            continue
        kind = step.get("type")
        if kind in ("assistant", "thinking", "tool_call"):
            if turn is None:
                turn = Turn(f"steps[{number}]")
                steps.append(turn)
            _add_to(turn, step)
            continue
        turn = None
        steps += _other(draft, step, f"steps[{number}]")
    draft.model = text_of(root.get("model"))
    draft.usage = _usage(root.get("usage"), "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
    draft.meta = {key: root.get(key) for key in ("session_id", "cwd", "repo_sha", "branch", "started_at", "ended_at", "result")}
    add_steps(draft, steps)
    yield draft


def _add_to(turn: Turn, step: dict[str, Any]) -> None:
    match step["type"]:
        case "assistant":
            turn.texts.append(text_of(step.get("content")))
        case "thinking":
            turn.thinking.append(text_of(step.get("content")))
        case _:
            turn.calls.append(ToolCall(text_of(step.get("tool_id")), text_of(step.get("tool")), json_text(step.get("input"))))
    turn.usage = turn.usage or _usage(step, "tokens_in", "tokens_out", "tokens_cached", "")


def _other(draft: Draft, step: dict[str, Any], where: str) -> list[Step]:
    match step.get("type"):
        case "tool_result":
            failed = step.get("success") is False
            return [Result(text_of(step.get("tool_id")), json_text(step.get("output") or step.get("content") or ""), where, error=failed)]
        case "system_status":
            status = text_of(step.get("status"))
            return [Mark("compaction" if "ompact" in status else "note", status)]
        case "user":
            return [Said("user", text_of(step.get("content")))]
        case "system_init":
            return []
        case kind:
            draft.warn(where, f"step of type {kind!r} was kept as an event")
            return [Mark("note", json_text(step))]


def _usage(value: Any, sent: str, given: str, cached: str, written: str) -> Usage | None:
    if not isinstance(value, dict):
        return None
    inputs, outputs, read, wrote = (number_of(value.get(key)) or 0 for key in (sent, given, cached, written))
    cost = value.get("cost_usd")
    money = float(cost) if isinstance(cost, int | float) else None
    return Usage(inputs + read + wrote, outputs, read, money) if inputs or outputs or read else None
