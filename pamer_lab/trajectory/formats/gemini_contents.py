"""Gemini histories: a list of contents, bare or inside an error report, a checkpoint, a request or an evaluation scenario.

Also chat recordings of gemini-cli (`messages` of type user and gemini, with calls and their results inside). Histories
are cut when the program compresses them, so a result whose call is gone stays as a user message. There is no system
role: a system instruction is read where the file has one. Questions of a scenario are kept in `meta`.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.fields import read_tools
from pamer_lab.trajectory.formats.gemini_parts import declared_tools, to_steps
from pamer_lab.trajectory.formats.rows import Row, list_of, number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "gemini-contents"
HISTORIES = ("history", "context", "contents")
ROLES = ("user", "model", "function", "system")


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl"):
        return False
    root = document.root
    if document.kind == "jsonl":
        return _is_content(root) or _is_wrapper(root) or _is_recording(root)
    return _is_history(root) or _is_wrapper(root) or _is_recording(root) or (type(root) is list and bool(root) and _is_wrapper(root[0]))


def _is_content(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and isinstance(value.get("parts"), list)


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and any(_is_content(item) for item in value[:5])


def _history_key(value: Any) -> str:
    found = (key for key in HISTORIES if _is_history(value.get(key))) if isinstance(value, dict) else iter(())
    return next(found, "")


def _is_wrapper(value: Any) -> bool:
    return bool(_history_key(value))


def _is_recording(value: Any) -> bool:
    if not isinstance(value, dict) or "sessionId" not in value or not isinstance(value.get("messages"), list):
        return False
    return any(isinstance(item, dict) and item.get("type") == "gemini" for item in value["messages"])


def read(document: Document) -> Iterator[Draft]:
    if _is_history(document.root):
        yield _read_history(Draft(NAME, orphans="as_user"), document.root, "")
        return
    if _is_content(document.root):
        yield _read_history(Draft(NAME, orphans="as_user"), [record.value for record in document.records], "")
        return
    found = rows(document)
    for where, value in found:
        draft = Draft(NAME, where=where if len(found) > 1 else "", orphans="as_user")
        if _is_recording(value):
            yield _read_recording(draft, value)
        elif key := _history_key(value):
            yield _read_wrapper(draft, value, key)


def _read_wrapper(draft: Draft, value: dict[str, Any], key: str) -> Draft:
    given = value.get("config")
    config: dict[str, Any] = given if isinstance(given, dict) else {}
    system = value.get("systemInstruction") or value.get("system_instruction") or config.get("systemInstruction")
    if system:
        parts = system.get("parts") if isinstance(system, dict) else system
        add_steps(draft, to_steps(draft, "system", parts, "systemInstruction"))
    draft.tools = read_tools(declared_tools(value.get("tools") or config.get("tools")))
    draft.task_id = text_of(value.get("scenarioId") or value.get("id"))
    draft.model = text_of(value.get("model"))
    draft.meta = {name: item for name, item in value.items() if name not in (key, "tools", "systemInstruction", "config")}
    return _read_history(draft, value[key], key)


def _read_history(draft: Draft, history: list[Any], place: str) -> Draft:
    steps: list[Step] = []
    for number, content in enumerate(history):
        where = f"{place}[{number}]"
        if isinstance(content, dict):
            steps += to_steps(draft, text_of(content.get("role")), content.get("parts") or [], where)
        else:
            # A report may end with the bare parts that were about to be sent.
            steps += to_steps(draft, "user", content, where)
    add_steps(draft, steps)
    return draft


def _read_recording(draft: Draft, value: dict[str, Any]) -> Draft:
    steps: list[Step] = []
    for number, item in enumerate(value["messages"]):
        if isinstance(item, dict):
            steps += _recorded(draft, (f"messages[{number}]", item))
    draft.meta = {"session": value.get("sessionId"), "project": value.get("projectHash"), "summary": value.get("summary")}
    add_steps(draft, steps)
    return draft


def _recorded(draft: Draft, row: Row) -> list[Step]:
    where, item = row
    kind = text_of(item.get("type"))
    parts = item.get("content") or []
    if kind == "user":
        return to_steps(draft, "user", parts, where)
    if kind != "gemini":
        texts = [step.text for step in to_steps(draft, "user", parts, where) if isinstance(step, Said)]
        return [Mark("note", "\n".join(texts), {"type": kind})]
    draft.model = draft.model or text_of(item.get("model"))
    steps = to_steps(draft, "model", parts, where, usage=_tokens(item.get("tokens")))
    turn = steps[0]
    if isinstance(turn, Turn):
        for thought in list_of(item.get("thoughts")):
            if isinstance(thought, dict):
                turn.thinking.append(": ".join(filter(None, (text_of(thought.get("subject")), text_of(thought.get("description"))))))
        for call in list_of(item.get("toolCalls")):
            if isinstance(call, dict):
                turn.calls.append(ToolCall(text_of(call.get("id")), text_of(call.get("name")), json_text(call.get("args"))))
                steps += _answers(draft, call, where)
    return steps


def _answers(draft: Draft, call: dict[str, Any], where: str) -> list[Step]:
    """A recorded call's results: the parts that were sent back, all for this call."""
    if not call.get("result"):
        return []
    failed = call.get("status") in ("error", "cancelled")
    pieces = [step for step in to_steps(draft, "user", call["result"], where) if isinstance(step, Result | Said)]
    images = [image for step in pieces for image in step.images]
    return [Result(text_of(call.get("id")), "\n".join(step.text for step in pieces), where, images, failed, text_of(call.get("name")))]


def _tokens(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    sent, given, cached, thought = (number_of(value.get(key)) or 0 for key in ("input", "output", "cached", "thoughts"))
    return Usage(sent, given + thought, cached) if sent or given else None
