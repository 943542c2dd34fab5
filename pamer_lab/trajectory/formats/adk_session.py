"""Google ADK sessions and evaluation sets: events with Gemini contents, each by a named agent.

All agents of a session speak in one trace; a turn carries its author's name. A compaction recorded in an event's
actions is an event with the summary's text.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.gemini_parts import to_steps
from pamer_lab.trajectory.shared.rows import first_value, trace_rows
from pamer_lab.trajectory.shared.steps import Mark, Said, Step, add_steps
from pamer_lab.trajectory.shared.usage import usage_in

NAME = "google-adk-session"
EVENTS = ("events", "sessionEvents", "session_events")
"""Where a session keeps its events; the second is Vertex AI's."""


def detect(document: Document) -> bool:
    if _cases(first_value(document)):
        return True
    return any("author" in event and "content" in event for event in get.objects(first_value(document), *EVENTS)[:3])


def _cases(value: Any) -> list[dict[str, Any]]:
    """The cases of an evaluation set that are conversations."""
    return [case for case in get.objects(value, "evalCases", "eval_cases") if get.objects(case, "conversation")]


def _events(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The invocations of a case as events: what the user said, the tools' calls and responses, the final answer."""
    events: list[dict[str, Any]] = []
    for one in get.objects(case, "conversation"):
        between = get.obj(one, "intermediateData", "intermediate_data")
        calls = [{"functionCall": call} for call in get.objects(between, "toolUses", "tool_uses")]
        answers = [{"functionResponse": answer} for answer in get.objects(between, "toolResponses", "tool_responses")]
        final = get.obj(one, "finalResponse", "final_response")
        events.append({"author": "user", "content": get.obj(one, "userContent", "user_content")})
        events += [{"content": {"role": "model", "parts": calls}}] if calls else []
        events += [{"content": {"role": "user", "parts": answers}}] if answers else []
        events += [{"content": {**final, "role": "model"}}] if final else []
    return events


def read(document: Document) -> Iterator[Draft]:
    for where, value in trace_rows(document):
        for place, case in get.placed(_cases(value), f"{where} evalCases".strip()):
            draft = _read_one(Draft(NAME, where=place, orphans="as_user"), {"events": _events(case)})
            draft.task_id = get.text(case, "evalId", "eval_id")
            yield draft
        if get.items(value, *EVENTS) or isinstance(value.get("events"), list):
            yield _read_one(Draft(NAME, where=where, orphans="as_user"), value)


def _read_one(draft: Draft, value: dict[str, Any]) -> Draft:
    steps: list[Step] = []
    for where, event in get.placed(get.items(value, *EVENTS), "events"):
        if isinstance(event, dict):
            steps += _steps(draft, event, where)
    add_steps(draft, steps)
    draft.meta = get.facts(value, "appName", "app_name", "userId", "user_id", "state", "current_agent_name")
    draft.meta["session"] = value.get("id")
    return draft


def _steps(draft: Draft, event: dict[str, Any], where: str) -> list[Step]:
    steps: list[Step] = []
    actions = get.obj(event, "actions")
    if isinstance(actions.get("compaction"), dict):
        kept = get.obj(actions["compaction"], "compactedContent", "compacted_content")
        said = to_steps(draft, "user", kept.get("parts") or [], where)
        steps.append(Mark("compaction", "\n".join(step.text for step in said if isinstance(step, Said))))
    content = event.get("content")
    if not isinstance(content, dict) or event.get("partial"):
        return steps
    author = get.text(event, "author")
    role = get.text(content, "role") or ("user" if author == "user" else "model")
    name = "" if author == "user" else author
    draft.model = draft.model or get.text(event, "modelVersion", "model_version")
    usage = usage_in(
        get.obj(event, "usageMetadata", "usage_metadata"),
        sent="promptTokenCount|prompt_token_count",
        given="candidatesTokenCount|candidates_token_count thoughtsTokenCount|thoughts_token_count",
        cached="cachedContentTokenCount|cached_content_token_count",
    )
    return steps + to_steps(draft, role, content.get("parts") or [], where, usage=usage, name=name)
