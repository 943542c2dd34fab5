"""Kiro CLI sessions: one event per line, `Prompt`, `AssistantMessage`, `ToolResults`; each part is `{kind, data}`.

A model turn may span several lines (its thoughts, then its call): consecutive lines are joined until one has a call.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import head, rows
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.values import EventKind

NAME = "kiro-cli"
USERS, AGENTS, RESULTS = ("Prompt", "UserMessage"), ("AssistantMessage", "Response"), ("ToolResults",)
MARKS: dict[str, EventKind] = {"Compaction": "compaction", "Clear": "context_edit"}


def detect(document: Document) -> bool:
    kinds = {get.text(row, "kind") for row in head(document) if get.objects(get.obj(row, "data"), "content")}
    return bool(kinds.intersection(AGENTS)) and bool(kinds.intersection((*USERS, *RESULTS)))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    steps: list[Step] = []
    for where, row in rows(document):
        _add(draft, steps, where, get.text(row, "kind"), get.obj(row, "data"))
    add_steps(draft, steps)
    yield draft


def _add(draft: Draft, steps: list[Step], where: str, kind: str, data: dict[str, Any]) -> None:
    if kind in MARKS:
        steps.append(Mark(MARKS[kind], get.text(data, "summary"), {"event": kind}))
        return
    if kind not in (*USERS, *AGENTS, *RESULTS):
        draft.unread(kind or "line without a kind", where)
        return
    content = content_of(draft, [_plain(part) for part in get.items(data, "content")], where)
    if kind in AGENTS:
        turn = steps[-1] if steps and isinstance(steps[-1], Turn) and not steps[-1].calls else Turn(where)
        turn.add(content)
        turn.calls += content.calls
        steps += [turn] if not steps or steps[-1] is not turn else []
        return
    steps += [Result(call_id, result.text, where, result.images, failed) for call_id, result, failed in content.results]
    if kind in USERS or content.texts:
        steps.append(Said("user", content.text, content.images))


def _plain(part: Any) -> Any:
    """A part in the vocabulary's words."""
    if not isinstance(part, dict) or "kind" not in part:
        return part
    kind, data = part["kind"], part.get("data")
    if kind in ("text", "json"):
        return {"type": "text", "text": data} if kind == "text" else {"type": "json", "json": data}
    if not isinstance(data, dict):
        return {"type": kind, "data": data}
    if kind == "toolResult":
        return {"type": "tool_result", **data, "content": [_plain(inner) for inner in get.items(data, "content")]}
    if kind == "toolUse":
        return {"type": "tool_use", "id": get.text(data, "toolUseId"), "name": get.text(data, "name"), "input": data.get("input")}
    return {**data, "type": kind}
