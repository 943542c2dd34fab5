"""letta-evals results: one graded sample per line, its trajectory a list of message lists.

Messages with the same id form one turn (reasoning, text and calls). If the user's message was not recorded, the sample's input
takes its place. The question id is derived from the input's text, because sample ids are only numbers.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import head, rows
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import add_usage, usage_in

NAME = "letta-evals-results"
KNOWN = ("summary", "header", "metadata")
"""Types of lines that hold no result."""


def detect(document: Document) -> bool:
    return any(_is_result(row) for row in head(document, 5))


def _is_result(row: dict[str, Any]) -> bool:
    result = get.obj(row, "result")
    return "sample" in result and isinstance(result.get("trajectory"), list)


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    others = [(where, row) for where, row in found if not _is_result(row)]
    for where, row in found:
        if _is_result(row):
            draft = _read_one(Draft(NAME, where=where), row["result"])
            for place, other in others:
                draft.passed(get.text(other, "type") or "no type", place, KNOWN)
            others = []
            yield draft


def _read_one(draft: Draft, result: dict[str, Any]) -> Draft:
    sample, grade = get.obj(result, "sample"), result.get("grade")
    inputs = [get.as_text(item) for item in get.as_list(sample.get("input"))]
    steps: list[Step] = []
    for number, messages in enumerate(result["trajectory"]):
        listed = [item for item in messages if isinstance(item, dict)] if isinstance(messages, list) else []
        if number < len(inputs) and not any(item.get("message_type") == "user_message" for item in listed):
            steps.append(Said("user", inputs[number]))
        steps += _steps(draft, listed, f"trajectory[{number}]")
    add_steps(draft, steps)
    draft.task_id = get.text(sample, "id")
    draft.question_id = "q-" + hashlib.sha256("\n".join(inputs).encode()).hexdigest()[:16]
    draft.model = get.text(result, "model_name")
    draft.reward = get.amount(grade, "score")
    for item in get.objects(result, "agent_usage"):
        draft.usage = add_usage(draft.usage, usage_in(item, sent="prompt_tokens", given="completion_tokens"))
    draft.meta = {"grade": grade, "ground_truth": sample.get("ground_truth"), "agent": result.get("agent_id")}
    draft.meta["submission"] = result.get("submission")
    return draft


def _steps(draft: Draft, messages: list[dict[str, Any]], place: str) -> list[Step]:
    steps: list[Step] = []
    turn, current = Turn(), ""
    for where, item in get.placed(messages, place):
        kind = get.text(item, "message_type")
        if kind in ("reasoning_message", "hidden_reasoning_message", "assistant_message", "tool_call_message", "approval_request_message"):
            key = get.text(item, "id")
            if not current or key != current:
                turn, current = Turn(where), key or where
                steps.append(turn)
            _add_to(draft, turn, item, kind, where)
            continue
        current = ""
        match kind:
            case "tool_return_message":
                failed = item.get("status") == "error" or bool(item.get("is_err"))
                text = json_text(item.get("tool_return") or "")
                steps.append(Result(get.text(item, "tool_call_id"), text, where, error=failed, name=get.text(item, "name")))
            case "user_message":
                steps.append(Said("user", content_of(draft, item.get("content"), where).text))
            case "system_message":
                steps.append(Said("system", content_of(draft, item.get("content"), where).text))
            case _:
                draft.warn(where, f"message of type {kind!r} was kept as an event")
                steps.append(Mark("note", json_text(item)))
    return steps


def _add_to(draft: Draft, turn: Turn, item: dict[str, Any], kind: str, where: str) -> None:
    if kind.endswith("reasoning_message"):
        turn.thinking.append(get.text(item, "reasoning", "hidden_reasoning"))
    elif kind == "assistant_message":
        turn.add(content_of(draft, item.get("content"), where))
    else:
        for call in get.items(item, "tool_calls") or [item.get("tool_call")]:
            if isinstance(call, dict):
                turn.calls.append(read_call(call, id="tool_call_id"))
