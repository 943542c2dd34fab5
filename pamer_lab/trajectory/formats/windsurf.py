"""Windsurf transcripts: steps of `type` user_input, planner_response and tools, with the step's fields under the name of its type.

A tool step is a call and its result in one. The log leaves out model turns without text, so tools that ran before the first response to
a prompt become calls of that response, with a warning.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.values import ToolCall

NAME = "windsurf-transcript"
OUTCOMES = frozenset(
    "content output result results new_content exit_code user_rejected error total_results stdout stderr acknowledgement_type diff".split()
)
"""Fields of a tool step that belong to the result; the others are arguments."""
TEXTS = ("content", "output", "result", "stdout", "error")


def detect(document: Document) -> bool:
    return any(row.get("type") in ("planner_response", "user_input") and isinstance(row.get(row["type"]), dict) for row in head(document))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    steps: list[Step] = []
    waiting: list[tuple[ToolCall, Result]] = []
    """Tools that ran before the agent's next response."""
    turn: Turn | None = None
    for number, (where, row) in enumerate(rows(document)):
        kind = get.text(row, "type")
        body = get.obj(row, kind)
        if kind == "user_input":
            steps += _flush(draft, waiting)
            turn = None
            steps.append(Said("user", get.text(body, "user_response", "text", "query") or json_text(body)))
        elif kind == "planner_response":
            turn = Turn(where, [get.text(body, "response", "text")], thinking=[text] if (text := get.text(body, "thinking")) else [])
            steps.append(turn)
            if waiting:
                draft.warn(
                    where, f"{len(waiting)} tool steps before this response are kept as its calls; the log has no text of their turn"
                )
                turn.calls += [call for call, _ in waiting]
                steps += [result for _, result in waiting]
                waiting.clear()
        elif body or "status" in row:
            pair = _tool(number, kind, body, row, where)
            if turn is None:
                waiting.append(pair)
            else:
                turn.calls.append(pair[0])
                steps.append(pair[1])
        else:
            steps.append(Mark("note", json_text(row), {"type": kind}))
            draft.unread(kind or "no type", where)
    steps += _flush(draft, waiting)
    add_steps(draft, steps)
    yield draft


def _flush(draft: Draft, waiting: list[tuple[ToolCall, Result]]) -> list[Step]:
    """Tools that no response followed are a turn of their own."""
    if not waiting:
        return []
    turn = Turn(waiting[0][1].where, calls=[call for call, _ in waiting])
    found = [result for _, result in waiting]
    waiting.clear()
    return [turn, *found]


def _tool(number: int, kind: str, body: dict[str, Any], row: dict[str, Any], where: str) -> tuple[ToolCall, Result]:
    own = get.text(row, "id", "step_id") or f"step_{number}"
    given = {key: value for key, value in body.items() if key not in OUTCOMES}
    if kind == "code_action":
        given = body
    came = {key: value for key, value in body.items() if key in OUTCOMES and kind != "code_action"}
    came |= {"status": row.get("status")} if not came else {}
    texts = [key for key in TEXTS if isinstance(body.get(key), str) and body[key].strip()]
    rest = {key: value for key, value in came.items() if key not in texts and value not in (0, False, None)}
    text = body[texts[0]] if len(texts) == 1 and not rest else json_text(came)
    failed = row.get("status") == "error" or body.get("exit_code") not in (None, 0)
    return ToolCall(own, kind, json_text(given)), Result(own, text, where, error=failed, name=kind)
