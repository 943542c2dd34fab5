"""pi coding-agent sessions: a session line, then messages, compactions and model changes, one per line; also `pi --mode json`.

A compaction is an event with the recorded tokens; its summary becomes a user message. Commands that the user ran
(`bashExecution`) and messages that an extension put into the context (`custom_message`, as OpenClaw does) are user messages.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import Row, head, rows
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.values import Message

NAME = "pi-session-jsonl"
QUIET = frozenset(
    "model_change thinking_level_change custom label session_info message_start message_update agent_start agent_end agent_settled "
    "turn_start turn_end tool_execution_start tool_execution_update tool_execution_end queue_update".split()
)
"""Lines that are not part of the conversation, or repeat messages that have a separate line."""
ROLES = ("user", "assistant", "toolResult", "bashExecution")
UNFINISHED = ("message_start", "message_update")
"""Lines of the stream that hold a partial message; `message_end` has the complete one."""


def detect(document: Document) -> bool:
    first = head(document, 6)
    opening = bool(first) and first[0].get("type") == "session" and "cwd" in first[0]
    return document.kind == "jsonl" and (opening or any(_is_message(row) for row in first)) and not any(map(_is_foreign, head(document)))


def _is_foreign(row: dict[str, Any]) -> bool:
    """Factory Droid's log has the same envelope, but its calls and results are Anthropic's parts, which this reader would lose."""
    return any(
        part.get("type") in ("tool_use", "tool_result", "toolRequest", "toolResponse")
        for part in get.objects(get.obj(row, "message"), "content")
    )


def _is_message(row: dict[str, Any]) -> bool:
    return row.get("type") in ("message", "message_end") and get.obj(row, "message").get("role") in ROLES


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    steps: list[Step] = []
    entries: dict[Any, int] = {}
    """Messages before each entry, by its number and its id: compactions name the first entry they kept."""
    cut: Row | None = None
    for number, (where, row) in enumerate(rows(document)):
        entries[number] = entries[get.text(row, "id")] = sum(not isinstance(step, Mark) for step in steps)
        if _is_message(row):
            steps += _message(draft, row["message"], where)
        elif row.get("type") in ("compaction", "branch_summary"):
            kept = row.get("firstKeptEntryIndex", row.get("firstKeptEntryId"))
            summary = get.text(row, "summary")
            facts = {"tokens_before": get.count(row, "tokensBefore"), "first_kept": kept}
            keeps = partial(_keep_from, entries[kept]) if isinstance(kept, int | str) and kept in entries else None
            steps.append(Mark("compaction", summary, facts, keeps))
            steps.append(Said("user", summary))
        elif row.get("type") == "custom_message":
            content = content_of(draft, row.get("content"), where)
            steps.append(Said("user", content.text, content.images, get.text(row, "customType")))
        elif row.get("type") == "model_change":
            draft.model = draft.model or get.text(row, "modelId")
            draft.passed("model_change", where, QUIET)
        elif row.get("type") == "session":
            draft.meta |= {"session": row.get("id"), "cwd": row.get("cwd"), "thinking_level": row.get("thinkingLevel")}
            draft.model = draft.model or get.text(row, "modelId")
        else:
            draft.passed(str(row.get("type")), where, QUIET)
        cut = (where, row) if row.get("type") in UNFINISHED else cut if row.get("type") != "message_end" else None
    if cut and get.obj(cut[1], "message").get("role") == "assistant":
        draft.warn(cut[0], "the stream ends in the middle of this message; the recorded part was kept")
        steps += _message(draft, cut[1]["message"], cut[0])
    add_steps(draft, steps)
    yield draft


def _keep_from(first: int, messages: Sequence[Message]) -> range:
    return range(first, len(messages))


def _message(draft: Draft, body: dict[str, Any], where: str) -> list[Step]:
    given = body.get("content")
    asked = [part for part in get.objects(body, "content") if part.get("type") == "toolCall"]
    content = content_of(draft, [part for part in given if part not in asked] if isinstance(given, list) else given, where)
    match body["role"]:
        case "assistant":
            draft.model = draft.model or get.text(body, "model")
            calls, usage = [read_call(part) for part in asked] + content.calls, get.obj(body, "usage")
            cost = get.amount(get.obj(usage, "cost"), "total") or get.amount(usage, "cost")
            tokens = usage_in(usage, sent="input cacheRead cacheWrite", given="output", cached="cacheRead", cost=cost)
            return [Turn(where, content.texts, calls, content.thinking, content.images, tokens)]
        case "toolResult":
            name = get.text(body, "toolName")
            return [Result(get.text(body, "toolCallId"), content.text, where, content.images, bool(body.get("isError")), name)]
        case "bashExecution":
            return [Said("user", "\n".join(filter(None, (get.text(body, "command"), get.text(body, "output"), content.text))))]
        case _:
            results: list[Step] = [Result(own, part.text, where, part.images, failed) for own, part, failed in content.results]
            return results + ([Said("user", content.text, content.images)] if content.texts or not results else [])
