"""Inspect AI evaluation logs: `.json`, and `.eval`, which is a zip of a header and one file per sample.

One sample in one epoch is one trace; its question is the task and the sample's id, so that epochs are replicas. References
to `attachments` are resolved. Scores become the reward: C is 1, P one half, I and N are 0; the first score that is a number
counts, all stand in `meta`. The sample's events repeat its messages and are read only for usage per call, tool descriptions
and compactions.
"""

import re
from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.fields import read_openai_calls, read_tools
from pamer_lab.trajectory.formats.rows import number_of, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.parts import Content, read_content
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "inspect-eval-log"
ATTACHMENT = re.compile(r"attachment://([0-9a-zA-Z]+)")
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def detect(document: Document) -> bool:
    if document.kind == "zip":
        return any(_is_sample_file(record.where) or record.where.endswith("header.json") for record in document.records)
    root = document.root
    return (
        document.kind == "json" and isinstance(root, dict) and isinstance(root.get("eval"), dict) and ("samples" in root or "plan" in root)
    )


def _is_sample_file(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def read(document: Document) -> Iterator[Draft]:
    if document.kind == "zip":
        names = {record.where: record.value for record in document.records}
        header = _object(names.get("header.json") or names.get("_journal/start.json"))
        samples = [(name, value) for name, value in names.items() if _is_sample_file(name)]
    else:
        header = document.root
        listed = header.get("samples")
        samples = [(f"samples[{number}]", value) for number, value in enumerate(listed if isinstance(listed, list) else [])]
    if not samples:
        raise FormatError("holds no samples (a header alone?); export the log with its samples")
    for where, sample in samples:
        if not isinstance(sample, dict):
            raise FormatError(f"is {type(sample).__name__}, not a sample", where=where)
        yield _read_one(Draft(NAME, where=where), sample, _object(header.get("eval")))


def _read_one(draft: Draft, sample: dict[str, Any], about: dict[str, Any]) -> Draft:
    attachments = _object(sample.get("attachments"))
    events = sample.get("events") or _object(sample.get("transcript")).get("events")
    record = _Events(events if isinstance(events, list) else [], attachments)
    task, identity = text_of(about.get("task")), text_of(sample.get("id"))
    draft.task_id = identity
    draft.question_id = f"{task}/{identity}" if task and identity else identity
    draft.model = text_of(about.get("model")) or text_of(_object(sample.get("output")).get("model"))
    draft.tools = read_tools(record.tools)
    draft.usage = _total(sample.get("model_usage"), draft.model)
    draft.reward = _reward(sample.get("scores") or sample.get("score"))
    draft.meta = {"task": task, "epoch": sample.get("epoch"), "scores": _grades(sample.get("scores")), "run": about.get("run_id")}
    draft.meta |= {key: sample.get(key) for key in ("target", "metadata", "error", "limit", "total_time")}
    messages = sample.get("messages")
    steps: list[Step] = []
    for number, message in enumerate(messages if isinstance(messages, list) else []):
        where = f"messages[{number}]"
        if not isinstance(message, dict):
            raise FormatError(f"is {type(message).__name__}, not a message", where=f"{draft.where} {where}")
        steps += record.marks.pop(text_of(message.get("id")), [])
        steps += _steps(draft, resolved(message, attachments), where, record.usage)
    steps += [mark for marks in record.marks.values() for mark in marks]
    turns = [step for step in steps if isinstance(step, Turn)]
    if not record.usage and len(turns) == len(record.in_order):
        for turn, usage in zip(turns, record.in_order, strict=True):
            turn.usage = usage
    add_steps(draft, steps)
    return draft


def resolved(value: Any, attachments: dict[str, Any]) -> Any:
    """The value with every reference to an attachment replaced by its text."""
    if isinstance(value, str):
        if "attachment://" not in value:
            return value
        return ATTACHMENT.sub(lambda found: text_of(attachments.get(found[1])) or found[0], value)
    if isinstance(value, list):
        return [resolved(item, attachments) for item in value]
    if isinstance(value, dict):
        return {key: resolved(item, attachments) for key, item in value.items()}
    return value


class _Events:
    """What a sample's events know beside the messages: usage per message, tools, and where compactions fell."""

    def __init__(self, events: list[Any], attachments: dict[str, Any]) -> None:
        self.usage: dict[str, Usage] = {}
        self.in_order: list[Usage | None] = []
        """Usage of the calls one after another, for logs whose messages have no ids."""
        self.tools: Any = []
        self.marks: dict[str, list[Step]] = {}
        waiting: list[Step] = []
        for event in events:
            if not isinstance(event, dict):
                continue
            if event.get("event") == "model":
                choices = _object(event.get("output")).get("choices")
                first = _object(choices[0]) if isinstance(choices, list) and choices else {}
                identity = text_of(_object(first.get("message")).get("id"))
                usage = _usage(_object(event.get("output")).get("usage"))
                self.in_order.append(usage)
                if identity and usage:
                    self.usage[identity] = usage
                self.tools = self.tools or resolved(event.get("tools"), attachments)
                if waiting and identity:
                    self.marks[identity], waiting = waiting, []
            elif event.get("event") == "compaction":
                before, after = number_of(event.get("tokens_before")), number_of(event.get("tokens_after"))
                facts = {"tokens_before": before, "tokens_after": after, "type": event.get("type"), "source": event.get("source")}
                waiting.append(Mark("compaction", "", facts))
        if waiting:
            self.marks[""] = waiting


def _steps(draft: Draft, message: dict[str, Any], where: str, usage: dict[str, Usage]) -> list[Step]:
    ran, content = _server_tools(draft, message.get("content"), where)
    match message.get("role"):
        case "assistant":
            calls = [call for call, _ in ran] + read_openai_calls(message.get("tool_calls"))
            thinking = content.thinking
            if thought := text_of(message.get("reasoning")):
                thinking = [thought, *thinking]
            turn = Turn(where, content.texts, calls, thinking, content.images, usage.get(text_of(message.get("id"))))
            return [turn, *(result for _, result in ran)]
        case "tool":
            error = message.get("error")
            text = content.text
            if isinstance(error, dict) and text_of(error.get("message")) not in text:
                text = "\n".join(filter(None, (text, text_of(error.get("message")))))
            name = text_of(message.get("function") or message.get("name"))
            return [Result(text_of(message.get("tool_call_id")), text, where, content.images, bool(error), name)]
        case "system":
            return [Said("system", content.text)]
        case "user":
            return [Said("user", content.text, content.images)]
        case other:
            raise FormatError(f"has the role {other!r}; known: system, user, assistant, tool", where=f"{draft.where} {where}")


def _server_tools(draft: Draft, value: Any, where: str) -> tuple[list[tuple[ToolCall, Result]], Content]:
    """Content, and the calls in it that the provider ran itself: Inspect keeps such a call and its result in one part."""
    ran: list[tuple[ToolCall, Result]] = []
    if isinstance(value, list):
        parts = []
        for part in value:
            if isinstance(part, dict) and part.get("type") == "tool_use" and "arguments" in part:
                identity = text_of(part.get("id")) or f"{where}.{len(ran)}"
                call = ToolCall(identity, text_of(part.get("name")), json_text(part["arguments"]))
                outcome = part.get("result") or part.get("error")
                ran.append((call, Result(identity, json_text(outcome or ""), where, error=bool(part.get("error")), name=call.name)))
            else:
                parts.append(part)
        value = parts
    try:
        content = read_content(value)
    except FormatError as error:
        raise FormatError(error.reason, where=f"{draft.where} {where}") from error
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text")
    return ran, content


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    keys = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    sent, given, total, cached, written = (number_of(value.get(key)) or 0 for key in keys)
    if total >= sent + given + cached + written:
        # Some providers' input excludes what their cache read and wrote; only the total tells.
        sent += cached + written
    cost = value.get("total_cost")
    return Usage(sent, given, cached, float(cost) if isinstance(cost, int | float) else None) if sent or given else None


def _total(value: Any, model: str) -> Usage | None:
    """The sample's usage by the evaluated model; graders and helpers are counted only where that one is not named."""
    usages = {name: usage for name, item in _object(value).items() if (usage := _usage(item))}
    if model in usages or len(usages) == 1:
        return usages.get(model) or next(iter(usages.values()))
    if not usages:
        return None
    parts = usages.values()
    return Usage(sum(u.input_tokens for u in parts), sum(u.output_tokens for u in parts), sum(u.cached_tokens for u in parts))


def _grades(scores: Any) -> dict[str, Any]:
    return {name: score.get("value") for name, score in _object(scores).items() if isinstance(score, dict)}


def _reward(scores: Any) -> float | None:
    given = [*_grades(scores).values(), _object(scores).get("value")]
    for value in given:
        if isinstance(value, str) and value in GRADES:
            return GRADES[value]
        if isinstance(value, int | float):
            return float(value)
    return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
