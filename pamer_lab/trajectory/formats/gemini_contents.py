"""Gemini histories: a list of contents, bare or inside an error report, a checkpoint, a request, an evaluation scenario or a prompt of
AI Studio (`chunkedPrompt`); also chat recordings of gemini-cli, as one object or one message per line.

In a recording, a later line with the same id replaces an earlier one, and messages before a rewind are kept. A result whose call was
cut by compression becomes a user message. The system message is the system instruction, if any; a scenario's questions are kept in `meta`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call, read_tools
from pamer_lab.trajectory.shared.gemini_parts import declared_tools, to_steps
from pamer_lab.trajectory.shared.rows import Row, first_row, first_value, head, rows, trace_rows
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps, rewound
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.values import Message

NAME = "gemini-contents"
HISTORIES = ("clientHistory", "history", "context", "contents")
ROLES = ("user", "model", "function", "system")
CHUNK_FACTS = frozenset("role tokenCount finishReason isThought thinkingBudget thoughtSignatures parts createTime isEdited".split())


def detect(document: Document) -> bool:
    root = first_value(document)
    if get.objects(get.obj(root, "chunkedPrompt"), "chunks"):
        return True
    if document.kind == "jsonl" and any(map(_is_recorded_line, head(document))):
        return True
    if document.kind == "jsonl":
        return _is_content(root) or bool(_history_key(root)) or _is_recording(root)
    return _is_history(root) or _is_recording(root) or bool(_history_key(first_row(document)))


def _is_content(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and isinstance(value.get("parts"), list)


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and any(_is_content(item) for item in value[:5])


def _history_key(value: Any) -> str:
    """The field of an object that holds a history; empty if there is none."""
    return next((key for key in HISTORIES if _is_history(get.items(value, key))), "")


def _is_recording(value: Any) -> bool:
    return isinstance(value, dict) and "sessionId" in value and any(_kind(item) == "gemini" for item in get.objects(value, "messages"))


def _kind(item: dict[str, Any]) -> str:
    """The speaker of a recorded message, in either of two fields."""
    return get.text(item, "type") or get.text(item, "role")


def _is_recorded_line(row: dict[str, Any]) -> bool:
    return row.get("type") == "gemini" and ("content" in row or "toolCalls" in row)


def read(document: Document) -> Iterator[Draft]:
    if any(map(_is_recorded_line, head(document))):
        yield _read_recorded_lines(Draft(NAME, orphans="as_user"), document)
        return
    if _is_history(document.root):
        yield _read_history(Draft(NAME, orphans="as_user"), document.root, "")
        return
    if _is_content(document.root):
        yield _read_history(Draft(NAME, orphans="as_user"), [record.value for record in document.records], "")
        return
    for where, value in trace_rows(document):
        draft = Draft(NAME, where=where, orphans="as_user")
        if chunks := get.objects(get.obj(value, "chunkedPrompt"), "chunks"):
            draft.model = get.text(get.obj(value, "runSettings"), "model")
            system = get.text(get.obj(value, "systemInstruction"), "text") or get.text(value, "systemInstruction")
            draft.messages += [Message("system", system)] if system else []
            yield _read_history(draft, _contents(chunks), "")
        elif _is_recording(value):
            yield _read_recording(draft, value)
        elif key := _history_key(value):
            yield _read_wrapper(draft, value, key)


def _contents(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """AI Studio's chunks as contents; consecutive chunks of the model (its thoughts, then its answer) are merged."""
    contents: list[dict[str, Any]] = []
    for chunk in chunks:
        part = {key: value for key, value in chunk.items() if key not in CHUNK_FACTS} | (
            {"thought": True} if chunk.get("isThought") else {}
        )
        role = get.text(chunk, "role")
        if contents and contents[-1]["role"] == role == "model":
            contents[-1]["parts"].append(part)
        else:
            contents.append({"role": role, "parts": [part]})
    return contents


def _read_wrapper(draft: Draft, value: dict[str, Any], key: str) -> Draft:
    config = get.obj(value, "config")
    system = get.some(value, "systemInstruction", "system_instruction") or config.get("systemInstruction")
    if system:
        parts = system.get("parts") if isinstance(system, dict) else system
        add_steps(draft, to_steps(draft, "system", parts, "systemInstruction"))
    draft.tools = read_tools(declared_tools(value.get("tools") or config.get("tools")))
    draft.task_id = get.text(value, "scenarioId", "id")
    draft.model = get.text(value, "model")
    draft.meta = {name: item for name, item in value.items() if name not in (key, "tools", "systemInstruction", "config")}
    return _read_history(draft, value[key], key)


def _read_history(draft: Draft, history: list[Any], place: str) -> Draft:
    steps: list[Step] = []
    for where, content in get.placed(history, place):
        if isinstance(content, dict) and not {"role", "parts"} & content.keys():
            draft.unread(get.text(content, "type") or "item without parts", where)
        elif isinstance(content, dict):
            steps += to_steps(draft, get.text(content, "role"), content.get("parts") or [], where)
        else:
            # A report may end with the bare parts that were about to be sent.
            steps += to_steps(draft, "user", content, where)
    add_steps(draft, steps)
    return draft


def _read_recording(draft: Draft, value: dict[str, Any]) -> Draft:
    steps: list[Step] = []
    for where, item in get.placed(value["messages"], "messages"):
        if isinstance(item, dict):
            steps += _recorded(draft, item, where)
    draft.meta = {"session": value.get("sessionId"), "project": value.get("projectHash"), "summary": value.get("summary")}
    add_steps(draft, list(_once(steps)))
    return draft


def _read_recorded_lines(draft: Draft, document: Document) -> Draft:
    """A recording written line by line: a header, messages by id, header updates, rewinds."""
    found: dict[str, Row | Mark] = {}
    for where, row in rows(document):
        key = get.text(row, "id") or where
        if row.get("type") == "message_update" and isinstance(before := found.get(key), tuple):
            found[key] = (before[0], {**before[1], **{name: value for name, value in row.items() if name not in ("type", "id")}})
        elif isinstance(row.get("type"), str) and row["type"] != "session_metadata":
            found[key] = (where, row)
        elif "$rewindTo" in row:
            found[where] = rewound(draft, where, row["$rewindTo"])
        else:
            header = get.obj(row, "$set") or row
            names = {"sessionId": "session", "projectHash": "project", "summary": "summary"}
            draft.meta |= {name: header[key] for key, name in names.items() if key in header}
            if get.items(header, "messages"):
                found |= {
                    get.text(item, "id") or f"{where}.{place}": (where, item) for place, item in enumerate(get.objects(header, "messages"))
                }
    steps: list[Step] = []
    for entry in found.values():
        steps += [entry] if isinstance(entry, Mark) else _recorded(draft, entry[1], entry[0])
    add_steps(draft, list(_once(steps)))
    return draft


def _once(steps: list[Step]) -> Iterator[Step]:
    """The steps without repeated results: newer recordings store each result with its call and again in the message sent back."""
    left = Counter(call.id for step in steps if isinstance(step, Turn) for call in step.calls)
    given: set[tuple[str, str]] = set()
    for step in steps:
        if isinstance(step, Result) and step.call_id in left:
            if left[step.call_id] <= 0 and (step.call_id, step.text) in given:
                continue
            left[step.call_id] -= 1
            given.add((step.call_id, step.text))
        yield step


def _recorded(draft: Draft, item: dict[str, Any], where: str) -> list[Step]:
    kind = _kind(item)
    parts = item.get("content") or []
    if kind in ("user", "tool", "function"):
        return to_steps(draft, "user", parts, where)
    if kind != "gemini":
        texts = [step.text for step in to_steps(draft, "user", parts, where) if isinstance(step, Said)]
        if not any(texts):
            draft.unread(kind or "no type", where)
        return [Mark("note", "\n".join(texts), {"type": kind})]
    draft.model = draft.model or get.text(item, "model")
    usage = usage_in(item.get("tokens"), sent="input", given="output thoughts", cached="cached")
    steps = to_steps(draft, "model", parts, where, usage=usage)
    turn = steps[0]
    if isinstance(turn, Turn):
        for thought in get.objects(item, "thoughts"):
            turn.thinking.append(": ".join(filter(None, (get.text(thought, "subject"), get.text(thought, "description")))))
        for call in get.objects(item, "toolCalls"):
            turn.calls.append(read_call(call, arguments="args"))
            steps += _answers(draft, call, where)
    return steps


def _answers(draft: Draft, call: dict[str, Any], where: str) -> list[Step]:
    """A recorded call's results: the parts that were sent back, all for this call."""
    if not call.get("result"):
        return []
    failed = call.get("status") in ("error", "cancelled")
    pieces = [step for step in to_steps(draft, "user", call["result"], where) if isinstance(step, Result | Said)]
    images = [image for step in pieces for image in step.images]
    return [Result(get.text(call, "id"), "\n".join(step.text for step in pieces), where, images, failed, get.text(call, "name"))]
