"""Google ADK sessions: events with Gemini contents, each by a named agent.

All agents of a session speak in one trace; a turn carries its author's name. A compaction recorded in an event's
actions is an event with the summary's text.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.formats.gemini_parts import to_steps
from pamer_lab.trajectory.formats.rows import number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Mark, Said, Step, add_steps
from pamer_lab.trajectory.values import Usage

NAME = "google-adk-session"


def detect(document: Document) -> bool:
    root = document.root
    events = root.get("events") if document.kind in ("json", "jsonl") and isinstance(root, dict) else None
    return isinstance(events, list) and any(isinstance(event, dict) and "author" in event and "content" in event for event in events[:3])


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    for where, value in found:
        events = value.get("events")
        if isinstance(events, list):
            yield _read_one(Draft(NAME, where=where if len(found) > 1 else "", orphans="as_user"), value, events)


def _read_one(draft: Draft, value: dict[str, Any], events: list[Any]) -> Draft:
    steps: list[Step] = []
    for number, event in enumerate(events):
        if isinstance(event, dict):
            steps += _steps(draft, event, f"events[{number}]")
    add_steps(draft, steps)
    names = ("appName", "app_name", "userId", "user_id", "state", "current_agent_name")
    draft.meta = {"session": value.get("id"), **{name: value.get(name) for name in names}}
    return draft


def _steps(draft: Draft, event: dict[str, Any], where: str) -> list[Step]:
    steps: list[Step] = []
    actions = event.get("actions")
    summary = actions.get("compaction") if isinstance(actions, dict) else None
    if isinstance(summary, dict):
        kept = summary.get("compactedContent") or summary.get("compacted_content")
        said = to_steps(draft, "user", kept.get("parts") or [], where) if isinstance(kept, dict) else []
        steps.append(Mark("compaction", "\n".join(step.text for step in said if isinstance(step, Said))))
    content = event.get("content")
    if not isinstance(content, dict) or event.get("partial"):
        return steps
    author = text_of(event.get("author"))
    role = text_of(content.get("role")) or ("user" if author == "user" else "model")
    name = "" if author == "user" else author
    usage = _usage(event.get("usageMetadata") or event.get("usage_metadata"))
    draft.model = draft.model or text_of(event.get("modelVersion") or event.get("model_version"))
    return steps + to_steps(draft, role, content.get("parts") or [], where, usage=usage, name=name)


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None

    def count(camel: str, snake: str) -> int:
        return number_of(value.get(camel)) or number_of(value.get(snake)) or 0

    sent = count("promptTokenCount", "prompt_token_count")
    given = count("candidatesTokenCount", "candidates_token_count") + count("thoughtsTokenCount", "thoughts_token_count")
    return Usage(sent, given, count("cachedContentTokenCount", "cached_content_token_count")) if sent or given else None
