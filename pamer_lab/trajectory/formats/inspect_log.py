"""Inspect AI evaluation logs: `.json`, and `.eval`, which is a zip of a header and one file per sample.

Each sample of each epoch is one trace; its question is the task and the sample's id, so that epochs are replicas. References to
`attachments` are resolved. The first score that is a number or a grade (C is 1, P 0.5, I and N 0) is the reward; `meta` keeps all. Events
repeat the messages and are read only for usage per call, tool descriptions and compactions.
"""

import re
from collections.abc import Iterator
from functools import reduce
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.opening import Budget
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call, read_calls, read_tools
from pamer_lab.trajectory.shared.parts import Content, content_of
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import add_usage, usage_in
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "inspect-eval-log"
SUFFIXES = (".eval",)
ATTACHMENT = re.compile(r"attachment://([0-9a-zA-Z]+)")
NO_SAMPLES = "contains no samples (only a header?); export the log with its samples"
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def detect(document: Document) -> bool:
    if document.kind == "zip":
        return any(_is_sample_file(record.where) or record.where.endswith("header.json") for record in document.records)
    root = one_value(document)
    return isinstance(root, dict) and isinstance(root.get("eval"), dict) and ("samples" in root or "plan" in root)


def _is_sample_file(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def read(document: Document) -> Iterator[Draft]:
    if document.kind == "zip":
        names = {record.where: record.value for record in document.records}
        header = get.obj(names, "header.json", "_journal/start.json")
        samples = [(name, value) for name, value in names.items() if _is_sample_file(name)]
    else:
        header = document.root
        samples = list(get.placed(get.items(header, "samples"), "samples"))
    if not samples:
        raise FormatError(NO_SAMPLES)
    for where, sample in samples:
        draft = Draft(NAME, where=where)
        yield _read_one(draft, draft.expect(sample, "", "a sample"), get.obj(header, "eval"), document.budget)


def _read_one(draft: Draft, sample: dict[str, Any], about: dict[str, Any], budget: Budget) -> Draft:
    attachments = Attachments(get.obj(sample, "attachments"), budget)
    record = _Events(get.objects(sample, "events") or get.objects(get.obj(sample, "transcript"), "events"), attachments)
    task, identity = get.text(about, "task"), get.text(sample, "id")
    draft.task_id = identity
    draft.question_id = f"{task}/{identity}" if task and identity else identity
    draft.model = get.text(about, "model") or get.text(get.obj(sample, "output"), "model")
    draft.tools = read_tools(record.tools)
    draft.usage = _total(sample.get("model_usage"), draft.model)
    draft.reward = _reward(sample.get("scores") or sample.get("score"))
    draft.meta = {"task": task, "epoch": sample.get("epoch"), "scores": _grades(sample.get("scores")), "run": about.get("run_id")}
    draft.meta |= get.facts(sample, "target", "metadata", "error", "limit", "total_time")
    steps: list[Step] = []
    for where, message in draft.each(get.items(sample, "messages"), "messages", "a message"):
        steps += record.marks.pop(get.text(message, "id"), [])
        steps += _steps(draft, attachments.resolved(message), where, record.usage)
    steps += [mark for marks in record.marks.values() for mark in marks]
    turns = [step for step in steps if isinstance(step, Turn)]
    if not record.usage and len(turns) == len(record.in_order):
        for turn, usage in zip(turns, record.in_order, strict=True):
            turn.usage = usage
    add_steps(draft, steps)
    return draft


class Attachments:
    """Texts that messages refer to. Resolving a reference copies its text, so every copy counts against the budget."""

    def __init__(self, texts: dict[str, Any], budget: Budget) -> None:
        self._texts = texts
        self._budget = budget

    def resolved(self, value: Any) -> Any:
        """The value with every reference to an attachment replaced by its text."""
        if isinstance(value, str):
            return ATTACHMENT.sub(self._text, value) if "attachment://" in value else value
        if isinstance(value, list):
            return [self.resolved(item) for item in value]
        if isinstance(value, dict):
            return {key: self.resolved(item) for key, item in value.items()}
        return value

    def _text(self, found: re.Match[str]) -> str:
        text = get.text(self._texts, found[1]) or found[0]
        self._budget.take(len(text))
        return text


class _Events:
    """What a sample's events record in addition to the messages: usage per message, tools, and where compactions fell."""

    def __init__(self, events: list[dict[str, Any]], attachments: "Attachments") -> None:
        self.usage: dict[str, Usage] = {}
        self.in_order: list[Usage | None] = []
        """Usage of the calls one after another, for logs whose messages have no ids."""
        self.tools: Any = []
        self.marks: dict[str, list[Step]] = {}
        waiting: list[Step] = []
        for event in events:
            if event.get("event") == "model":
                output = get.obj(event, "output")
                identity = get.text(get.obj(get.first(output, "choices"), "message"), "id")
                usage = _usage(output.get("usage"))
                self.in_order.append(usage)
                if identity and usage:
                    self.usage[identity] = usage
                self.tools = self.tools or attachments.resolved(event.get("tools"))
                if waiting and identity:
                    self.marks[identity], waiting = waiting, []
            elif event.get("event") == "compaction":
                before, after = get.count(event, "tokens_before"), get.count(event, "tokens_after")
                facts = {"tokens_before": before, "tokens_after": after, **get.facts(event, "type", "source")}
                waiting.append(Mark("compaction", "", facts))
        if waiting:
            self.marks[""] = waiting


def _steps(draft: Draft, message: dict[str, Any], where: str, usage: dict[str, Usage]) -> list[Step]:
    ran, content = _server_tools(draft, message.get("content"), where)
    match message.get("role"):
        case "assistant":
            calls = [call for call, _ in ran] + read_calls(message.get("tool_calls"))
            thinking = content.thinking
            if thought := get.text(message, "reasoning"):
                thinking = [thought, *thinking]
            turn = Turn(where, content.texts, calls, thinking, content.images, usage.get(get.text(message, "id")))
            return [turn, *(result for _, result in ran)]
        case "tool":
            text, complaint = content.text, get.text(get.obj(message, "error"), "message")
            if complaint not in text:
                text = "\n".join(filter(None, (text, complaint)))
            name = get.text(message, "function", "name")
            return [Result(get.text(message, "tool_call_id"), text, where, content.images, bool(message.get("error")), name)]
        case "system":
            return [Said("system", content.text)]
        case "user":
            return [Said("user", content.text, content.images)]
        case other:
            raise draft.fault(where, f"has the role {other!r}; known: system, user, assistant, tool")


def _server_tools(draft: Draft, value: Any, where: str) -> tuple[list[tuple[ToolCall, Result]], Content]:
    """(calls that the provider ran itself, with results; other content). Inspect stores such a call and its result in one part."""
    ran: list[tuple[ToolCall, Result]] = []
    if isinstance(value, list):
        parts = []
        for part in value:
            if isinstance(part, dict) and part.get("type") == "tool_use" and "arguments" in part:
                call = read_call({**part, "id": get.text(part, "id") or f"{where}.{len(ran)}"})
                outcome = get.some(part, "result", "error")
                ran.append((call, Result(call.id, json_text(outcome or ""), where, error=bool(part.get("error")), name=call.name)))
            else:
                parts.append(part)
        value = parts
    return ran, content_of(draft, value, where)


def _usage(value: Any) -> Usage | None:
    """Some providers exclude cache reads and writes from the input tokens; the total shows which do."""
    given, cached, cost = "output_tokens", "input_tokens_cache_read", get.amount(value, "total_cost")
    sent = "input_tokens input_tokens_cache_read input_tokens_cache_write"
    usage = usage_in(value, sent=sent, given=given, cached=cached, cost=cost)
    if usage is None or (get.count(value, "total_tokens") or 0) >= usage.input_tokens + usage.output_tokens:
        return usage
    return usage_in(value, sent="input_tokens", given=given, cached=cached, cost=cost)


def _total(value: Any, model: str) -> Usage | None:
    """The evaluated model's usage for this sample; if it is not listed, the sum over all models, graders included."""
    usages = {name: _usage(item) for name, item in value.items()} if isinstance(value, dict) else {}
    return usages.get(model) or reduce(add_usage, usages.values(), None)


def _grades(scores: Any) -> dict[str, Any]:
    return {name: score.get("value") for name, score in scores.items() if isinstance(score, dict)} if isinstance(scores, dict) else {}


def _reward(scores: Any) -> float | None:
    given = [*_grades(scores).values(), scores.get("value") if isinstance(scores, dict) else None]
    for value in given:
        if isinstance(value, str) and value in GRADES:
            return GRADES[value]
        if isinstance(value, int | float):
            return float(value)
    return None
