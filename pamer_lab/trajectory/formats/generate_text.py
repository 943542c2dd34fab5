"""Results of the AI SDK's `generateText` and `streamText`, as applications store them: one step per model call, with its usage.

The prompt comes from the result or from the first step's request, if the application stored it; otherwise the trace has a warning.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.dialects import steps_of
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.ordered import ordered_steps
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episode
from pamer_lab.trajectory.shared.span_values import prompt_of
from pamer_lab.trajectory.shared.steps import Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "vercel-generate-text"


def detect(document: Document) -> bool:
    steps = get.objects(first_episode(document), "steps")
    return bool(steps) and all({"finishReason", "stepType"} & step.keys() for step in steps) and any(map(_parts, steps))


def read(document: Document) -> Iterator[Draft]:
    for where, value in episodes(document):
        yield attempt(NAME, where, _read_one, value, where)


def _read_one(value: Any, where: str) -> Draft:
    steps = get.objects(value, "steps")
    if not steps:
        raise FormatError("is not a result with `steps`", where=where)
    draft = Draft(NAME, where=where, orphans="as_user")
    found = _prompt(draft, value, steps[0])
    if not any(isinstance(step, Said) and step.role == "user" for step in found):
        draft.warn("steps[0].request", "the prompt was not recorded; the trace begins with the agent's answer")
    for place, step in get.placed(steps, "steps"):
        usage = read_usage(step.get("usage"))
        answer = ordered_steps(draft, _parts(step), place, usage)
        found += answer or [Turn(place, usage=usage)]
        response = get.obj(step, "response")
        draft.model = get.text(response, "modelId") or get.text(get.obj(step, "model"), "modelId") or draft.model
    draft.usage = read_usage(value.get("totalUsage") or value.get("usage"))
    draft.meta = get.facts(value, "finishReason")
    add_steps(draft, found)
    return draft


def _prompt(draft: Draft, value: dict[str, Any], first: dict[str, Any]) -> list[Step]:
    """What was asked: the messages that the application kept with the result, or those of the first request."""
    body = get.obj(first, "request").get("body")
    body = get.parsed(body) if isinstance(body, str) else body
    draft.tools = read_tools(get.items(body, "tools"))
    kept = {key: value[key] for key in ("system", "prompt", "messages") if key in value}
    return steps_of(draft, prompt_of(kept or body), "request")


def _parts(step: dict[str, Any]) -> list[Any]:
    """The parts of one step; results of version 4 keep text, calls and results in separate fields."""
    if content := get.items(step, "content"):
        return content
    reasoning = step.get("reasoning")
    texts = [{"type": "reasoning", "text": reasoning}] if isinstance(reasoning, str) and reasoning else []
    if text := get.text(step, "text"):
        texts.append({"type": "text", "text": text})
    calls = [{**call, "type": "tool-call"} for call in get.objects(step, "toolCalls")]
    return [*texts, *calls, *({**result, "type": "tool-result"} for result in get.objects(step, "toolResults"))]
