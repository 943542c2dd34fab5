"""Langfuse trace exports: observations whose inputs and outputs are JSON text in the dialect of some framework.

The trace is the longest prompt of any observation and the answer to it. Where no prompt repeats the history, it is put together from the
answers and tools in the order they began. What other observations said is kept as notes.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import messages_of, parsed, to_steps
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import read_usage, usage_in

NAME = "langfuse-trace-export"


def detect(document: Document) -> bool:
    return {"startTime", "type"} <= get.first(one_value(document), "observations").keys()


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    seen = sorted(get.objects(root, "observations"), key=lambda item: get.text(item, "startTime"))
    draft = Draft(NAME, orphans="as_user")
    calls = [item for item in seen if item.get("type") == "GENERATION"]
    longest = max(seen, key=lambda item: len(messages_of(item.get("input"))), default=None)
    if longest is None:
        raise FormatError("contains no observations")
    if len(messages_of(longest.get("input"))) >= len(calls):
        steps = _history(draft, longest)
    else:
        draft.warn("observations", "no prompt repeats the history; it was assembled from the answers and tools in chronological order")
        steps = _sequence(draft, seen)
    steps += _unheard(draft, steps, seen)
    _add_facts(draft, get.obj(root, "trace") or root, calls, steps)
    add_steps(draft, steps)
    yield draft


def _history(draft: Draft, observation: dict[str, Any]) -> list[Step]:
    where = get.text(observation, "name")
    answer = parsed(observation.get("output"))
    steps: list[Step] = []
    if instructions := get.text(answer, "instructions"):
        steps.append(Said("system", instructions))
    draft.tools = read_tools(get.items(answer, "tools"))
    steps += to_steps(draft, messages_of(observation.get("input")), f"{where}.input")
    said = steps[-1].texts if steps and isinstance(steps[-1], Turn) else None
    for step in to_steps(draft, messages_of(answer), f"{where}.output"):
        if isinstance(step, Turn) and step.texts != said:
            steps.append(step)
    return steps


def _sequence(draft: Draft, seen: list[dict[str, Any]]) -> list[Step]:
    steps: list[Step] = []
    for observation in seen:
        where, kind = get.text(observation, "name"), observation.get("type")
        if kind == "GENERATION":
            steps += [step for step in to_steps(draft, messages_of(observation.get("output")), where) if isinstance(step, Turn)]
        elif kind == "TOOL":
            answer = parsed(observation.get("output"))
            content = answer.get("content") if isinstance(answer, dict) else answer
            text = content_of(draft, content, where).text if isinstance(content, str | list) else json_text(answer)
            steps.append(Result("", text, where, name=where))
    return [*_opening(draft, seen), *_joined(steps)]


def _opening(draft: Draft, seen: list[dict[str, Any]]) -> list[Step]:
    for observation in seen:
        value = parsed(observation.get("input"))
        if isinstance(value, dict) and isinstance(value.get("prompt"), str):
            return to_steps(draft, messages_of(value), get.text(observation, "name"))
    return []


def _joined(steps: list[Step]) -> list[Step]:
    """Merge turns with calls and no result between them: their tools were requested together."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, Turn) and step.calls and kept and isinstance(kept[-1], Turn) and kept[-1].calls:
            kept[-1].merge(step)
        else:
            kept.append(step)
    return kept


def _unheard(draft: Draft, steps: list[Step], seen: list[dict[str, Any]]) -> list[Step]:
    """Notes for what other observations asked and answered, if the conversation does not contain it."""
    known = "\n".join(text for step in steps for text in _spoken(step))
    marks: list[Step] = []
    for observation in seen:
        if observation.get("type") not in ("GENERATION", "TOOL"):
            continue
        answers = [text for step in to_steps(draft, messages_of(observation.get("output")), "") for text in _spoken(step)]
        if any(text and text not in known for text in answers):
            asked = [text for step in to_steps(draft, messages_of(observation.get("input")), "") for text in _spoken(step)]
            new = [text for text in [*asked, *answers] if text and text not in known]
            marks.append(Mark("note", "\n".join(new), {"observation": observation.get("name")}))
    return marks


def _spoken(step: Step) -> list[str]:
    if isinstance(step, Turn):
        return [*step.texts, *(f"{call.name} {call.arguments}" for call in step.calls)]
    return [step.text]


def _add_facts(draft: Draft, about: dict[str, Any], calls: list[dict[str, Any]], steps: list[Step]) -> None:
    draft.model = next(filter(None, (get.text(call, "model") for call in calls)), "")
    turns = [step for step in steps if isinstance(step, Turn)]
    if len(turns) == len(calls):
        for turn, call in zip(turns, calls, strict=True):
            cached = "input_cache_read|prompt_details.cache_read"
            turn.usage = usage_in(call.get("usageDetails"), sent="input", given="output", cached=cached) or read_usage(call.get("usage"))
    draft.meta = get.facts(about, "id", "name", "sessionId", "environment", "tags", "timestamp")
