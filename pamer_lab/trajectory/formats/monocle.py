"""Monocle's OpenTelemetry spans: a flat list with each model call twice (the framework's span and the API's).

The trace is the longest prompt among the framework's inference spans and its answer. Turns take their usage from the spans in
order, if there are as many spans as turns.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import parsed
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.steps import Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "otel-monocle-spans"


def detect(document: Document) -> bool:
    root = one_value(document)
    return isinstance(root, list) and any("span.type" in get.obj(span, "attributes") for span in root[:3])


def _event(span: dict[str, Any], name: str) -> dict[str, Any]:
    """What the span's first event of this name recorded."""
    return next((get.obj(event, "attributes") for event in get.objects(span, "events") if event.get("name") == name), {})


def _prompt(span: dict[str, Any]) -> list[Any]:
    return get.items(_event(span, "data.input"), "input")


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    spans = [span for span in document.root if isinstance(span, dict)]
    calls = [span for span in spans if get.text(get.obj(span, "attributes"), "span.type").startswith("inference") and _prompt(span)]
    for where, span in get.placed(spans, ""):
        if "attributes" not in span:
            draft.unread("record without attributes", where)
    calls.sort(key=lambda span: get.text(span, "start_time"))
    if not calls:
        raise FormatError("contains no model call with its prompt, so there are no messages")
    last = max(calls, key=lambda span: len(_prompt(span)))
    steps: list[Step] = []
    said = [*_prompt(last), _event(last, "data.output").get("response")]
    for where, item in get.placed(said, f"{get.text(last, 'name')} input"):
        steps += _steps(parsed(item), where)
    turns = [step for step in steps if isinstance(step, Turn)]
    if len(turns) == len(calls):
        for turn, span in zip(turns, calls, strict=True):
            turn.usage = read_usage(_event(span, "metadata"))
    else:
        draft.warn(
            "spans", f"{len(calls)} model calls were recorded, {len(turns)} of them in the longest prompt; usage per turn is left out"
        )
    attributes = get.obj(last, "attributes")
    draft.model = get.text(attributes, "entity.2.name")
    draft.meta = {"trace": get.obj(last, "context").get("trace_id"), "workflow": attributes.get("workflow.name")}
    add_steps(draft, steps)
    yield draft


def _steps(message: Any, where: str) -> list[Step]:
    steps: list[Step] = []
    for role, value in message.items() if isinstance(message, dict) else ():
        if role == "ai":
            steps.append(_turn(value, where))
        elif role == "tool":
            steps.append(Result("", json_text(value), where))
        else:
            steps.append(Said("system" if role == "system" else "user", json_text(value)))
    return steps


def _turn(value: Any, where: str) -> Turn:
    """The model's message: text, or its calls as JSON."""
    calls = get.as_list(parsed(value))
    if all(isinstance(call, dict) and "name" in call and "args" in call for call in calls):
        return Turn(where, calls=read_calls(calls))
    return Turn(where, [json_text(value)])
