"""Headless runs as flat events: Factory `droid exec` and Gemini CLI with `--output-format stream-json`.

Lines of `type` message, tool_call or tool_use, tool_result, and a last line with the run's totals. Pieces of one message
(`delta`) are one text. The closing line's text is kept as a note where no message said it.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Turn
from pamer_lab.trajectory.shared.usage import read_usage, usage_in
from pamer_lab.trajectory.shared.vocabulary import call_of, failure, role_of

NAME = "agent-stream-json"
CALLS = ("tool_call", "tool_use")
CALL_IDS = ("toolCallId", "tool_call_id", "tool_id", "call_id", "toolUseId", "id")
OUTPUTS = ("value", "output", "result", "content", "error", "text")
CLOSING = ("completion", "result")


def detect(document: Document) -> bool:
    first = head(document)
    said = [row for row in first if row.get("type") == "message" and isinstance(row.get("role"), str)]
    named = [row for row in first if row.get("type") in CALLS and {"toolName", "tool_name"} & row.keys()]
    return bool(named) or (bool(said) and any("session_id" in row for row in first) and not any("message" in row for row in said))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    warn_strays(draft, document)
    log = Log(draft)
    pieces: list[str] = []
    """Pieces of the message that is being written."""
    for where, row in rows(document):
        if not (row.get("type") == "message" and row.get("delta") is True):
            _flush(log, pieces, where)
        _line(log, pieces, row, where)
    _flush(log, pieces, "end")
    yield log.finish()


def _flush(log: Log, pieces: list[str], where: str) -> None:
    if pieces:
        log.agent("".join(pieces), where)
        pieces.clear()


def _line(log: Log, pieces: list[str], row: dict[str, Any], where: str) -> None:
    kind = get.text(row, "type")
    if kind == "message":
        given = next((row[key] for key in ("text", "content", "message") if row.get(key) is not None), None)
        if role_of(row.get("role")) != "assistant":
            log.say("system" if role_of(row.get("role")) == "system" else "user", given, where)
        elif row.get("delta") is True and isinstance(given, str):
            pieces.append(given)
        else:
            log.close()
            log.agent(given, where)
    elif kind in ("reasoning", "thinking", "thought"):
        log.open(where).thinking.append(get.text(row, "text", "content", "thinking"))
    elif kind in CALLS:
        name = get.text(row, "toolName", "tool_name", "name", "toolId")
        log.call(call_of({**row, "id": get.text(row, *CALL_IDS), "name": name}), where)
    elif kind == "tool_result":
        output = next((row[key] for key in OUTPUTS if row.get(key) is not None), None)
        if isinstance(output, dict) and isinstance(output.get("message"), str):
            output = output["message"]
        failed = failure(row) or row.get("error") is not None
        name = get.text(row, "toolName", "tool_name")
        log.answer(get.text(row, *CALL_IDS), output, where, failed=failed, name=name, rest=get.facts(row, "status", "value", "output"))
    elif kind in ("system", "init"):
        log.draft.model = log.draft.model or get.text(row, "model")
        log.draft.tools = log.draft.tools or read_tools(row.get("tools"))
        log.draft.meta |= {"session": row.get("session_id"), "cwd": row.get("cwd")}
    elif kind in CLOSING:
        _close(log, row)
    elif text := get.text(row, "message", "text", "error"):
        log.mark("note", text, event=kind)
    else:
        log.draft.unread(kind or "no type", where)


def _close(log: Log, row: dict[str, Any]) -> None:
    """Totals of the run, and its last words where no message has them."""
    stats = get.obj(row, "stats")
    log.draft.usage = read_usage(row.get("usage")) or usage_in(stats, sent="input_tokens", given="output_tokens", cached="cached")
    log.draft.meta |= get.facts(row, "numTurns", "durationMs", "status")
    text = get.text(row, "finalText", "result", "response")
    said = {part for step in log.steps if isinstance(step, Turn) for part in step.texts}
    if text and text not in said:
        log.mark("note", text, event=get.text(row, "type"))
    if fault := row.get("error"):
        log.mark("note", get.text(fault, "message") or json_text(fault), event="error")
