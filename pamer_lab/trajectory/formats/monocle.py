"""Monocle's OpenTelemetry spans: a flat list, each model call twice (the framework's span and the API's).

The trace is the longest prompt among the framework's inference spans and the answer to it; usage comes from the spans one after another.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.fields import read_openai_calls, read_usage
from pamer_lab.trajectory.formats.dialects import parsed
from pamer_lab.trajectory.formats.rows import text_of
from pamer_lab.trajectory.formats.steps import Result, Said, Step, Turn, add_steps

NAME = "otel-monocle-spans"


def detect(document: Document) -> bool:
    root = document.root
    return document.kind == "json" and isinstance(root, list) and any("span.type" in _object(span, "attributes") for span in root[:3])


def _object(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _event(span: dict[str, Any], name: str) -> dict[str, Any]:
    events = span.get("events")
    for event in events if isinstance(events, list) else []:
        if isinstance(event, dict) and event.get("name") == name:
            return _object(event, "attributes")
    return {}


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    spans = [span for span in document.root if isinstance(span, dict)]
    calls = [span for span in spans if text_of(_object(span, "attributes").get("span.type")).startswith("inference") and _prompt(span)]
    calls.sort(key=lambda span: text_of(span.get("start_time")))
    if not calls:
        raise FormatError("holds no model call with its prompt, so there are no messages")
    last = max(calls, key=lambda span: len(_prompt(span)))
    steps: list[Step] = []
    for number, item in enumerate([*_prompt(last), _event(last, "data.output").get("response")]):
        steps += _steps(parsed(item), f"{text_of(last.get('name'))} input[{number}]")
    turns = [step for step in steps if isinstance(step, Turn)]
    if len(turns) == len(calls):
        for turn, span in zip(turns, calls, strict=True):
            turn.usage = read_usage(_event(span, "metadata"))
    else:
        draft.warn(
            "spans", f"{len(calls)} model calls were recorded, {len(turns)} of them in the longest prompt; usage per turn is left out"
        )
    attributes = _object(last, "attributes")
    draft.model = text_of(attributes.get("entity.2.name"))
    draft.meta = {"trace": _object(last, "context").get("trace_id"), "workflow": attributes.get("workflow.name")}
    add_steps(draft, steps)
    yield draft


def _prompt(span: dict[str, Any]) -> list[Any]:
    given = _event(span, "data.input").get("input")
    return given if isinstance(given, list) else []


def _steps(message: Any, where: str) -> list[Step]:
    steps: list[Step] = []
    for role, value in message.items() if isinstance(message, dict) else ():
        text = value if isinstance(value, str) else json_text(value)
        if role == "ai":
            steps.append(_turn(value, where))
        elif role == "tool":
            steps.append(Result("", text, where))
        else:
            steps.append(Said("system" if role == "system" else "user", text))
    return steps


def _turn(value: Any, where: str) -> Turn:
    """The model's message: text, or its calls as JSON."""
    given = parsed(value)
    calls = given if isinstance(given, list) else [given]
    if all(isinstance(call, dict) and "name" in call and "args" in call for call in calls):
        return Turn(where, calls=read_openai_calls(calls))
    return Turn(where, [value if isinstance(value, str) else json_text(value)])
