"""ATIF trajectories (Harbor's interchange format, v1.x): one object, an array, one per line, or a header line and one step per line.

An agent step is a turn; its observation holds the results. An observation that names no call answers the first open one, or becomes a user
message if none is open. A trajectory continued with a summarised context ends with a compaction event that names the continuation, which is
a separate trace with the same question id (its session without `-cont-N`). Steps copied into a continuation are kept, with a warning.
"""

import re
from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call, read_tools
from pamer_lab.trajectory.shared.parts import Content, content_of
from pamer_lab.trajectory.shared.rows import Row, first_row, rows
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps, stamp_steps
from pamer_lab.trajectory.shared.usage import priced, read_usage, usage_in

NAME = "atif"
CONTINUATION = re.compile(r"[-.]cont-\d+$")
FOOTER = {"final_metrics", "notes", "extra", "subagent_trajectories", "continued_trajectory_ref"}
"""Fields of a trajectory that a line after its steps may add."""
TASKS = ("task_id", "task_name", "task", "instance_id")


def detect(document: Document) -> bool:
    first = first_row(document)
    named = get.text(first, "schema_version").startswith("ATIF")
    return named and (isinstance(first.get("steps"), list) or bool(first.get("__header__")))


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    complete, others = _gathered(found) if first_row(document).get("__header__") else (found, [])
    for where, value in complete:
        if not isinstance(value.get("steps"), list):
            raise FormatError("has no list of steps", where=where)
        draft = Draft(NAME, where=where if len(complete) > 1 else "")
        for place, other in others:
            draft.unread(get.text(other, "type") or "line without a source", place)
        others = []
        yield _read_one(draft, value)


def _gathered(found: list[Row]) -> tuple[list[Row], list[Row]]:
    """Trajectories written as a header line and step lines, and the lines that are neither."""
    complete: list[Row] = []
    others: list[Row] = []
    for where, row in found:
        if row.get("__header__"):
            complete.append((where, {**row, "steps": []}))
        elif "source" in row:
            complete[-1][1]["steps"].append(row)
        elif row.keys() & FOOTER:
            complete[-1][1].update({key: value for key, value in row.items() if key != "steps"})
        else:
            others.append((where, row))
    return complete, others


def _read_one(draft: Draft, value: dict[str, Any]) -> Draft:
    agent, facts = get.obj(value, "agent"), get.obj(value, "extra")
    draft.tools = read_tools(agent.get("tool_definitions"))
    draft.model = get.text(agent, "model_name")
    draft.task_id = get.text(facts, *TASKS)
    session = get.text(value, "session_id", "trajectory_id")
    draft.question_id = draft.task_id or CONTINUATION.sub("", session)
    draft.meta = {"session": session, "agent": agent.get("name"), "version": agent.get("version"), "extra": facts}
    draft.meta |= {"schema": value.get("schema_version"), "notes": value.get("notes"), "agent_extra": agent.get("extra")}
    _add_totals(draft, value.get("final_metrics"))
    _Steps(draft).add(value["steps"])
    for number, (where, side) in enumerate(get.placed(get.items(value, "subagent_trajectories"), "subagent_trajectories")):
        draft.event("subagent", "\n\n".join(_side_texts(draft, side, where)), number=number)
    if reference := value.get("continued_trajectory_ref"):
        draft.event("compaction", "the run continues in another file, with its context summarised", continued_in=reference)
        draft.meta["continued_in"] = reference
    return draft


def _side_texts(draft: Draft, side: Any, where: str) -> Iterator[str]:
    """Everything that a side agent and its own side agents thought, said, called and got back."""
    for place, step in get.placed(get.objects(side, "steps"), f"{where}.steps"):
        results = get.objects(get.obj(step, "observation"), "results")
        said = [get.text(step, "reasoning_content"), _content(draft, step.get("message"), place).text]
        calls = [f"{get.text(call, 'function_name')} {json_text(call.get('arguments'))}" for call in get.objects(step, "tool_calls")]
        yield from filter(None, [*said, *calls, *(_content(draft, result.get("content"), place).text for result in results)])
    for place, nested in get.placed(get.items(side, "subagent_trajectories"), f"{where}.subagent_trajectories"):
        yield from _side_texts(draft, nested, place)


def _add_totals(draft: Draft, totals: Any) -> None:
    if isinstance(totals, dict):
        names = {"sent": "total_prompt_tokens", "given": "total_completion_tokens", "cached": "total_cached_tokens"}
        draft.usage = usage_in(totals, **names, cost=totals.get("total_cost_usd") or None)
        draft.meta["final_metrics"] = totals


class _Steps:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.steps: list[Step] = []
        self.extras: dict[str, Any] = {}
        self.copied = 0

    def add(self, steps: list[Any]) -> None:
        for number, step in enumerate(steps):
            where = f"steps[{number}]"
            before = len(self.steps)
            self._one(self.draft.expect(step, where, "a step"), where)
            stamp_steps(self.steps, before, get.as_time(step.get("timestamp")))
            if step.get("extra"):
                self.extras[get.text(step, "step_id") or str(number)] = step["extra"]
        if self.copied:
            self.draft.warn("steps", f"{self.copied} steps were copied from the trajectory before this one")
        self.draft.meta["step_extra"] = self.extras
        add_steps(self.draft, self.steps)

    def _one(self, step: dict[str, Any], where: str) -> None:
        self.copied += bool(step.get("is_copied_context"))
        content = _content(self.draft, step.get("message"), where)
        match step.get("source"):
            case "agent":
                self.steps.append(self._turn(step, content, where))
            case "system":
                self.steps.append(Said("system", content.text))
            case "user":
                self.steps.append(Said("user", content.text, content.images))
            case other:
                raise self.draft.fault(where, f"has the source {other!r}; known: system, user, agent")
        turn = self.steps[-1] if isinstance(self.steps[-1], Turn) else None
        left = [call.id for call in turn.calls] if turn else []
        for result in get.objects(get.obj(step, "observation"), "results"):
            self._result(result, left, where, of_agent=turn is not None)

    def _turn(self, step: dict[str, Any], content: Content, where: str) -> Turn:
        calls = [read_call(call, id="tool_call_id", name="function_name") for call in get.objects(step, "tool_calls")]
        turn = Turn(where, content.texts, calls, content.thinking, content.images)
        if thought := get.text(step, "reasoning_content"):
            turn.thinking.insert(0, thought)
        turn.usage = priced(read_usage(step.get("metrics")), get.amount(step.get("metrics"), "cost_usd"))
        self.draft.model = self.draft.model or get.text(step, "model_name")
        return turn

    def _result(self, result: dict[str, Any], left: list[str], where: str, *, of_agent: bool) -> None:
        """One observation; `left` holds the step's calls that are still open."""
        content = _content(self.draft, result.get("content"), where)
        reference = result.get("subagent_trajectory_ref")
        if reference:
            self.steps.append(Mark("subagent", "", {"trajectory": reference}))
        call_id = get.text(result, "source_call_id")
        if call_id or left:
            call_id = call_id or left[0]
            if call_id in left:
                left.remove(call_id)
            self.steps.append(Result(call_id, content.text, where, content.images))
        elif content.texts:
            self.steps.append(Said("user", content.text, content.images, "observation", result=of_agent))
        elif not reference:
            self.draft.unread("empty observation", where)


def _content(draft: Draft, value: Any, where: str) -> Content:
    """A message or observation: text, parts, or any JSON value, which is then kept as JSON text."""
    if isinstance(value, dict) and not isinstance(value.get("type"), str):
        value = json_text(value)
    return content_of(draft, value, where)
