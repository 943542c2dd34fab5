"""Our own format: a `Trace` as JSON, with `"pamer_lab": 1` among its fields (`docs/trace-format.md`).

One object, a list of them, or one per line. Unknown keys are refused, because a misspelt `labels` would vanish.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import first_episode, read_each
from pamer_lab.trajectory.values import Event, Label, Message, Tool, Trace, Usage

NAME = "pamer-lab"
VERSION = 1


class NativeTrace(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The file form of a trace: what a person writes, without the ids we compute."""

    pamer_lab: int
    messages: tuple[Message, ...]
    question_id: str = ""
    task_id: str = ""
    tools: tuple[Tool, ...] = ()
    labels: tuple[Label, ...] = ()
    events: tuple[Event, ...] = ()
    model: str = ""
    reward: float | None = None
    usage: Usage | None = None
    meta: dict[str, Any] = msgspec.field(default_factory=dict)


PARTS = {"messages": Message, "tools": Tool, "labels": Label, "events": Event}


def detect(document: Document) -> bool:
    first = first_episode(document)
    return isinstance(first, dict) and "pamer_lab" in first and "messages" in first


def read(document: Document) -> Iterator[Draft]:
    return read_each(document, NAME, _read_one)


def _read_one(value: Any, where: str) -> Draft:
    _refuse_unknown(value, where)
    try:
        native = msgspec.convert(value, NativeTrace)
    except msgspec.ValidationError as error:
        raise FormatError(f"does not match our trace format: {error}", where=where) from error
    if native.pamer_lab != VERSION:
        raise FormatError(f"is version {native.pamer_lab} of our format; this program reads version {VERSION}", where=where)
    draft = Draft(NAME, where=where)
    _add_messages(draft, native.messages)
    turns = sum(message.role == "assistant" for message in native.messages)
    for label in native.labels:
        if not 0 <= label.t < turns:
            raise FormatError(f"has a label at decision point {label.t}; the trace has {turns}", where=where)
        if any(not 0 <= step < label.t for step in label.steps):
            raise FormatError(f"has a label at {label.t} that needs steps {list(label.steps)}, which are not all before it", where=where)
    for number, event in enumerate(native.events):
        if not 0 <= event.before_message <= len(native.messages):
            raise FormatError(
                f"is before message {event.before_message}; there are {len(native.messages)}", where=f"{where} events[{number}]"
            )
        _refuse_impossible(event, len(native.messages), f"{where} events[{number}]")
    draft.tools, draft.labels, draft.events = list(native.tools), list(native.labels), list(native.events)
    draft.question_id, draft.task_id, draft.model = native.question_id, native.task_id, native.model
    draft.reward, draft.usage, draft.meta = native.reward, native.usage, dict(native.meta)
    return draft


def _refuse_impossible(event: Event, count: int, where: str) -> None:
    """Refuse an event that replaces messages after itself, or names a summary before itself."""
    ends = [0, *(number for pair in event.replaced for number in pair), event.before_message]
    if ends != sorted(ends) or any(start == end for start, end in event.replaced):
        raise FormatError(f"replaces {list(event.replaced)}, which are not ascending ranges before {event.before_message}", where=where)
    if event.summary is not None and not (event.replaced and event.before_message <= event.summary < count):
        raise FormatError(
            f"names message {event.summary} as its summary; this needs `replaced`, and a message at or after the event", where=where
        )


def _refuse_unknown(value: Any, where: str) -> None:
    """Refuse misspelt fields of messages, tools, labels and events, which would be silently lost."""
    for field, kind in PARTS.items():
        for number, item in enumerate(get.items(value, field)):
            if isinstance(item, dict) and (unknown := item.keys() - set(kind.__struct_fields__)):
                reason = f"has unknown fields {sorted(unknown)}; known: {', '.join(kind.__struct_fields__)}"
                raise FormatError(reason, where=f"{where} {field}[{number}]".strip())


def _add_messages(draft: Draft, messages: tuple[Message, ...]) -> None:
    """Messages pass through unchanged; only the tool protocol is checked, by the same rules as everywhere."""
    for where, message in get.placed(messages, "messages"):
        match message.role:
            case "assistant":
                draft.assistant(message.content, message.tool_calls, where=where)
            case "tool":
                draft.tool(message.tool_call_id, message.content, name=message.name, where=where)
            case _:
                draft.messages.append(message)
        kept = draft.messages[-1]
        draft.messages[-1] = msgspec.structs.replace(message, tool_calls=kept.tool_calls, tool_call_id=kept.tool_call_id)


def schema() -> bytes:
    """The JSON Schema of a native trace, as published in `docs/trace.schema.json`."""
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "PaMER Lab trace"} | msgspec.json.schema(NativeTrace)
    for kind in PARTS.values():
        described["$defs"][kind.__name__]["additionalProperties"] = False
    return orjson.dumps(described, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def to_native(trace: Trace) -> bytes:
    """A trace in its file form, one JSON object; reading it gives the same messages, labels and events."""
    native = NativeTrace(
        pamer_lab=VERSION,
        messages=trace.messages,
        question_id=trace.question_id,
        task_id=trace.task_id,
        tools=trace.tools,
        labels=trace.labels,
        events=trace.events,
        model=trace.model,
        reward=trace.reward,
        usage=trace.usage,
        meta=trace.meta,
    )
    return msgspec.json.encode(native)
