"""ATIF trajectories (Harbor's interchange format, v1.x): one object, an array, one per line, or a header line and one step per line.

An agent step is a turn: its message, reasoning, calls and metrics; its observation holds the results. An observation that
names no call answers the first open one, and is a user message where there is none (as in a system step). A trajectory that
was continued after its context was summarised ends with a compaction event that names the continuation. The continuation is
a trace of its own with the same question id (its session, less `-cont-N`), because its context is not the first one's
history; steps that it copied are kept, with a warning.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.fields import read_tools, read_usage
from pamer_lab.trajectory.formats.rows import Row, head, list_of, number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.parts import Content, read_content
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "atif"
CONTINUATION = re.compile(r"[-.]cont-\d+$")
TASKS = ("task_id", "task_name", "task", "instance_id")


def detect(document: Document) -> bool:
    first = head(document, 1)
    if document.kind not in ("json", "jsonl") or not first:
        return False
    named = text_of(first[0].get("schema_version")).startswith("ATIF")
    return named and (isinstance(first[0].get("steps"), list) or bool(first[0].get("__header__")))


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    whole = _gathered(found) if any(row.get("__header__") for _, row in found[:1]) else found
    for where, value in whole:
        steps = value.get("steps")
        if not isinstance(steps, list):
            raise FormatError("has no list of steps", where=where)
        yield _read_one(Draft(NAME, where=where if len(whole) > 1 else ""), value, steps)


def _gathered(found: list[Row]) -> list[Row]:
    """Trajectories written as a header line and step lines."""
    whole: list[Row] = []
    for where, row in found:
        if row.get("__header__"):
            whole.append((where, {**row, "steps": []}))
        elif "source" in row:
            whole[-1][1]["steps"].append(row)
        else:
            whole[-1][1].update({key: value for key, value in row.items() if key != "steps"})
    return whole


def _read_one(draft: Draft, value: dict[str, Any], steps: list[Any]) -> Draft:
    given = value.get("agent")
    agent: dict[str, Any] = given if isinstance(given, dict) else {}
    extra = value.get("extra")
    facts: dict[str, Any] = extra if isinstance(extra, dict) else {}
    draft.tools = read_tools(agent.get("tool_definitions"))
    draft.model = text_of(agent.get("model_name"))
    draft.task_id = next((text_of(facts[key]) for key in TASKS if facts.get(key)), "")
    session = text_of(value.get("session_id")) or text_of(value.get("trajectory_id"))
    draft.question_id = draft.task_id or CONTINUATION.sub("", session)
    draft.meta = {"session": session, "agent": agent.get("name"), "version": agent.get("version"), "extra": facts}
    draft.meta |= {"schema": value.get("schema_version"), "notes": value.get("notes"), "agent_extra": agent.get("extra")}
    _add_totals(draft, value.get("final_metrics"))
    _Steps(draft).add(steps)
    for number, side in enumerate(value.get("subagent_trajectories") or []):
        texts = [_content(draft, step.get("message"), "").text for step in side.get("steps") or []] if isinstance(side, dict) else []
        draft.event("subagent", "\n\n".join(texts), number=number)
    if reference := value.get("continued_trajectory_ref"):
        draft.event("compaction", "the run goes on in another file, with its context summarised", continued_in=reference)
        draft.meta["continued_in"] = reference
    return draft


def _add_totals(draft: Draft, totals: Any) -> None:
    if not isinstance(totals, dict):
        return
    sent, given, cached = (number_of(totals.get(f"total_{key}_tokens")) or 0 for key in ("prompt", "completion", "cached"))
    cost = totals.get("total_cost_usd")
    money = float(cost) if isinstance(cost, int | float) else None
    draft.usage = Usage(sent, given, cached, money) if sent or given or money else None
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
            if not isinstance(step, dict):
                raise FormatError(f"is {type(step).__name__}, not a step", where=f"{self.draft.where} {where}".strip())
            self._one(step, where)
            if step.get("extra"):
                self.extras[text_of(step.get("step_id")) or str(number)] = step["extra"]
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
                raise FormatError(f"has the source {other!r}; known: system, user, agent", where=f"{self.draft.where} {where}".strip())
        observation = step.get("observation")
        results = observation.get("results") if isinstance(observation, dict) else None
        calls = self.steps[-1].calls if isinstance(self.steps[-1], Turn) else []
        left = [call.id for call in calls]
        for result in results if isinstance(results, list) else []:
            if isinstance(result, dict):
                self._result(result, left, where)

    def _turn(self, step: dict[str, Any], content: Content, where: str) -> Turn:
        turn = Turn(where, content.texts, [], content.thinking, content.images)
        if thought := text_of(step.get("reasoning_content")):
            turn.thinking.insert(0, thought)
        for call in list_of(step.get("tool_calls")):
            if isinstance(call, dict):
                arguments = json_text(call.get("arguments"))
                turn.calls.append(ToolCall(text_of(call.get("tool_call_id")), text_of(call.get("function_name")), arguments))
        metrics = step.get("metrics")
        turn.usage = read_usage(metrics)
        cost = metrics.get("cost_usd") if isinstance(metrics, dict) else None
        if isinstance(cost, int | float) and cost == cost:
            turn.usage = msgspec.structs.replace(turn.usage or Usage(), cost_usd=float(cost))
        self.draft.model = self.draft.model or text_of(step.get("model_name"))
        return turn

    def _result(self, result: dict[str, Any], left: list[str], where: str) -> None:
        """One observation; `left` holds the step's calls that are still open."""
        content = _content(self.draft, result.get("content"), where)
        reference = result.get("subagent_trajectory_ref")
        if reference:
            self.steps.append(Mark("subagent", "", {"trajectory": reference}))
        call_id = text_of(result.get("source_call_id"))
        if call_id or left:
            call_id = call_id or left[0]
            if call_id in left:
                left.remove(call_id)
            self.steps.append(Result(call_id, content.text, where, content.images))
        elif content.texts:
            self.steps.append(Said("user", content.text, content.images, "observation"))


def _content(draft: Draft, value: Any, where: str) -> Content:
    """A message or observation: text, parts, or any JSON value, which is then kept as JSON text."""
    if isinstance(value, dict) and not isinstance(value.get("type"), str):
        value = json_text(value)
    try:
        content = read_content(value)
    except FormatError as error:
        raise FormatError(error.reason, where=f"{draft.where} {where}".strip()) from error
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text")
    return content
