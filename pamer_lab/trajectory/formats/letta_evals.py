"""letta-evals results: one graded sample per line, its trajectory a list of message lists.

Messages of one id are one turn (reasoning, text and calls). Where the user's message was not recorded, the sample's
input is it. The question id is made from the input's text, because sample ids are only numbers.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.rows import head, number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.parts import read_content
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "letta-evals-results"


def detect(document: Document) -> bool:
    return document.kind in ("json", "jsonl") and any(_trajectory(row) is not None for row in head(document, 5))


def _trajectory(row: dict[str, Any]) -> list[Any] | None:
    result = row.get("result")
    found = result.get("trajectory") if isinstance(result, dict) and "sample" in result else None
    return found if isinstance(found, list) else None


def read(document: Document) -> Iterator[Draft]:
    for where, row in rows(document):
        trajectory = _trajectory(row)
        if trajectory is not None:
            yield _read_one(Draft(NAME, where=where), row["result"], trajectory)


def _read_one(draft: Draft, result: dict[str, Any], trajectory: list[Any]) -> Draft:
    given = result.get("sample")
    sample: dict[str, Any] = given if isinstance(given, dict) else {}
    asked = sample.get("input")
    inputs = [text_of(item) for item in asked] if isinstance(asked, list) else [text_of(asked)]
    steps: list[Step] = []
    for number, messages in enumerate(trajectory):
        listed = [item for item in messages if isinstance(item, dict)] if isinstance(messages, list) else []
        if number < len(inputs) and not any(item.get("message_type") == "user_message" for item in listed):
            steps.append(Said("user", inputs[number]))
        steps += _steps(draft, listed, f"trajectory[{number}]")
    add_steps(draft, steps)
    draft.task_id = text_of(sample.get("id"))
    draft.question_id = "q-" + hashlib.sha256("\n".join(inputs).encode()).hexdigest()[:16]
    draft.model = text_of(result.get("model_name"))
    grade = result.get("grade")
    score = grade.get("score") if isinstance(grade, dict) else None
    draft.reward = float(score) if isinstance(score, int | float) else None
    draft.usage = _usage(result.get("agent_usage"))
    draft.meta = {
        "submission": result.get("submission"),
        "grade": grade,
        "ground_truth": sample.get("ground_truth"),
        "agent": result.get("agent_id"),
    }
    return draft


def _steps(draft: Draft, messages: list[dict[str, Any]], place: str) -> list[Step]:
    steps: list[Step] = []
    turn, current = Turn(), ""
    for number, item in enumerate(messages):
        where, kind = f"{place}[{number}]", text_of(item.get("message_type"))
        if kind in ("reasoning_message", "hidden_reasoning_message", "assistant_message", "tool_call_message", "approval_request_message"):
            key = text_of(item.get("id"))
            if not current or key != current:
                turn, current = Turn(where), key or where
                steps.append(turn)
            _add_to(turn, item, kind)
            continue
        current = ""
        match kind:
            case "tool_return_message":
                failed = item.get("status") == "error" or bool(item.get("is_err"))
                call_id = text_of(item.get("tool_call_id"))
                steps.append(Result(call_id, json_text(item.get("tool_return") or ""), where, error=failed, name=text_of(item.get("name"))))
            case "user_message":
                steps.append(Said("user", read_content(item.get("content")).text))
            case "system_message":
                steps.append(Said("system", read_content(item.get("content")).text))
            case _:
                draft.warn(where, f"message of type {kind!r} was kept as an event")
                steps.append(Mark("note", json_text(item)))
    return steps


def _add_to(turn: Turn, item: dict[str, Any], kind: str) -> None:
    if kind.endswith("reasoning_message"):
        turn.thinking.append(text_of(item.get("reasoning") or item.get("hidden_reasoning")))
    elif kind == "assistant_message":
        content = read_content(item.get("content"))
        turn.texts += content.texts
        turn.images += content.images
    else:
        given = item.get("tool_calls")
        for call in given if isinstance(given, list) and given else [item.get("tool_call")]:
            if isinstance(call, dict):
                turn.calls.append(ToolCall(text_of(call.get("tool_call_id")), text_of(call.get("name")), json_text(call.get("arguments"))))


def _usage(value: Any) -> Usage | None:
    counts = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    sent, given = (sum(number_of(item.get(key)) or 0 for item in counts) for key in ("prompt_tokens", "completion_tokens"))
    return Usage(sent, given) if sent or given else None
