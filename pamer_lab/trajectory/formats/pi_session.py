"""pi coding-agent sessions: a session line, then messages, compactions and changes of model, one per line.

A compaction is an event with the recorded tokens; its summary is the user message it became. Commands that the user ran
(`bashExecution`) are user messages.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.rows import head, number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.parts import read_content
from pamer_lab.trajectory.values import Message, ToolCall, Usage

NAME = "pi-session-jsonl"


def detect(document: Document) -> bool:
    first = head(document, 2)
    opening = bool(first) and first[0].get("type") == "session" and "cwd" in first[0]
    return document.kind == "jsonl" and (opening or any(_is_message(row) for row in first))


def _is_message(row: dict[str, Any]) -> bool:
    body = row.get("message")
    return (
        row.get("type") == "message" and isinstance(body, dict) and body.get("role") in ("user", "assistant", "toolResult", "bashExecution")
    )


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    steps: list[Step] = []
    other: Counter[str] = Counter()
    entries: dict[Any, int] = {}
    """Messages before each entry, by its number and its id: compactions name the first entry they kept."""
    for number, (where, row) in enumerate(rows(document)):
        entries[number] = entries[text_of(row.get("id"))] = sum(not isinstance(step, Mark) for step in steps)
        if _is_message(row):
            steps += _message(draft, row["message"], where)
        elif row.get("type") in ("compaction", "branch_summary"):
            kept = row.get("firstKeptEntryIndex", row.get("firstKeptEntryId"))
            summary = text_of(row.get("summary"))
            facts = {"tokens_before": number_of(row.get("tokensBefore")), "first_kept": kept}
            steps.append(
                Mark(
                    "compaction",
                    summary,
                    facts,
                    partial(_keep_from, entries[kept]) if isinstance(kept, int | str) and kept in entries else None,
                )
            )
            steps.append(Said("user", summary))
        elif row.get("type") == "session":
            draft.meta |= {"session": row.get("id"), "cwd": row.get("cwd"), "thinking_level": row.get("thinkingLevel")}
            draft.model = draft.model or text_of(row.get("modelId"))
        else:
            other[str(row.get("type"))] += 1
    draft.meta["other_lines"] = dict(sorted(other.items()))
    add_steps(draft, steps)
    yield draft


def _keep_from(first: int, messages: Sequence[Message]) -> range:
    return range(first, len(messages))


def _message(draft: Draft, body: dict[str, Any], where: str) -> list[Step]:
    given = body.get("content")
    calls: list[ToolCall] = []
    if isinstance(given, list):
        for part in given:
            if isinstance(part, dict) and part.get("type") == "toolCall":
                calls.append(ToolCall(text_of(part.get("id")), text_of(part.get("name")), json_text(part.get("arguments"))))
        given = [part for part in given if not (isinstance(part, dict) and part.get("type") == "toolCall")]
    content = read_content(given)
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text")
    match body["role"]:
        case "assistant":
            draft.model = draft.model or text_of(body.get("model"))
            return [Turn(where, content.texts, calls, content.thinking, content.images, _usage(body.get("usage")))]
        case "toolResult":
            name = text_of(body.get("toolName"))
            return [Result(text_of(body.get("toolCallId")), content.text, where, content.images, bool(body.get("isError")), name)]
        case "bashExecution":
            return [Said("user", "\n".join(filter(None, (text_of(body.get("command")), text_of(body.get("output")), content.text))))]
        case _:
            return [Said("user", content.text, content.images)]


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    sent, given, read, written = (number_of(value.get(key)) or 0 for key in ("input", "output", "cacheRead", "cacheWrite"))
    cost = value.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else cost
    return Usage(sent + read + written, given, read, float(total) if isinstance(total, int | float) else None)
