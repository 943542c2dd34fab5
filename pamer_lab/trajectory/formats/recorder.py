"""OpenAgents' recorder: one object with a prompt and a flat list of steps.

What the model did between two results is one turn. Calls and results are paired by `tool_id`. A status that says it is
compacting is a compaction event. Results were shortened by the recorder itself.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import usage_in

NAME = "openagents-recorder"
TYPES = ("system_init", "system_status", "assistant", "thinking", "tool_call", "tool_result", "user")


def detect(document: Document) -> bool:
    first = get.first(one_value(document), "steps")
    return first.get("type") in TYPES and "step_id" in first


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    draft = Draft(NAME)
    steps: list[Step] = [Said("user", prompt)] if (prompt := get.text(root, "prompt")) else []
    turn: Turn | None = None
    for where, step in get.placed(root["steps"], "steps"):
        if not isinstance(step, dict):
            draft.warn(where, "is not an object; left out")
        elif step.get("type") in ("assistant", "thinking", "tool_call"):
            if turn is None:
                turn = Turn(where)
                steps.append(turn)
            _add_to(turn, step)
        else:
            turn = None
            steps += _other(draft, step, where)
    draft.model = get.text(root, "model")
    usage = get.obj(root, "usage")
    sent, cached = "input_tokens cache_read_tokens cache_creation_tokens", "cache_read_tokens"
    draft.usage = usage_in(usage, sent=sent, given="output_tokens", cached=cached, cost=usage.get("cost_usd"))
    draft.meta = get.facts(root, "session_id", "cwd", "repo_sha", "branch", "started_at", "ended_at", "result")
    add_steps(draft, steps)
    yield draft


def _add_to(turn: Turn, step: dict[str, Any]) -> None:
    match step["type"]:
        case "assistant":
            turn.texts.append(get.text(step, "content"))
        case "thinking":
            turn.thinking.append(get.text(step, "content"))
        case _:
            turn.calls.append(read_call(step, id="tool_id", name="tool", arguments="input"))
    cost = step.get("cost_usd")
    turn.usage = turn.usage or usage_in(step, sent="tokens_in tokens_cached", given="tokens_out", cached="tokens_cached", cost=cost)


def _other(draft: Draft, step: dict[str, Any], where: str) -> list[Step]:
    match step.get("type"):
        case "tool_result":
            text = json_text(get.some(step, "output", "content") or "")
            return [Result(get.text(step, "tool_id"), text, where, error=step.get("success") is False)]
        case "system_status":
            status = get.text(step, "status")
            return [Mark("compaction" if "ompact" in status else "note", status)]
        case "user":
            return [Said("user", get.text(step, "content"))]
        case "system_init":
            return []
        case kind:
            draft.warn(where, f"step of type {kind!r} was kept as an event")
            return [Mark("note", json_text(step))]
