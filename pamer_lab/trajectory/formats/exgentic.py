"""Exgentic's trajectory: one line per action of the agent and per observation, with the cost so far.

The task is in another file of the run, so a trace may begin with the agent. Each session in the file becomes a separate trace.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import output_content
from pamer_lab.trajectory.shared.rows import Row, attempt, head, rows
from pamer_lab.trajectory.shared.steps import Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.vocabulary import call_of, output_of
from pamer_lab.trajectory.values import Usage

NAME = "exgentic"


def detect(document: Document) -> bool:
    found = head(document, 10)
    return any(row.get("event") == "action" and "action" in row for row in found) and any("observation" in row for row in found)


def read(document: Document) -> Iterator[Draft]:
    sessions: dict[str, list[Row]] = {}
    for where, row in rows(document):
        sessions.setdefault(get.text(row, "session_id"), []).append((where, row))
    for found in sessions.values():
        yield attempt(NAME, found[0][0] if len(sessions) > 1 else "", _read_one, found)


def _read_one(found: list[Row]) -> Draft:
    draft = Draft(NAME, orphans="as_user")
    steps: list[Step] = []
    cost = 0.0
    for where, row in found:
        match row.get("event"):
            case "action":
                total = get.amount(row, "agent_cost") or 0.0
                usage = Usage(cost_usd=total - cost) if total > cost else None
                cost = max(cost, total)
                actions = [action for action in get.as_list(row.get("action")) if isinstance(action, dict)]
                calls = [call_of(inner) for action in actions for inner in get.objects(action, "actions") or [action]]
                steps.append(Turn(where, calls=[call for call in calls if call.name], usage=usage))
            case "observation":
                for observation in get.as_list(row.get("observation")):
                    steps += _observed(draft, observation, where)
            case kind:
                draft.unread(str(kind), where)
    first = found[0][1]
    draft.task_id = get.text(first, "task_key", "task_id") or get.text(first, "session_id")
    draft.meta = get.facts(first, "run_id", "session_id", "session_number")
    draft.usage = Usage(cost_usd=cost) if cost else None
    add_steps(draft, steps)
    return draft


def _observed(draft: Draft, value: Any, where: str) -> list[Step]:
    if not isinstance(value, dict):
        return [Said("user", get.as_text(value))] if value else []
    if several := get.objects(value, "observations"):
        return [step for one in several for step in _observed(draft, one, where)]
    output, failed = output_of(value.get("result"))
    invoked = [get.text(action, "id") for action in get.objects(value, "invoking_actions")]
    if output is None:
        return []
    content = output_content(draft, output, where)
    if not invoked:
        return [Said("user", content.text, content.images)]
    return [Result(own, content.text, where, content.images, failed) for own in invoked[:1]]
