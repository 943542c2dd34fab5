"""Sessions as flat events: Factory `droid exec` and Gemini CLI with `--output-format stream-json`, CodeBuddy, Zencoder and others.

Each line is a message, a call or a result, recognised by its `type` or role, with its fields on the line or in a `payload`.
Pieces of one message (`delta`) are joined. A closing line may hold the run's totals; its text is kept as a note if no message
contains it.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_tools
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Turn
from pamer_lab.trajectory.shared.usage import read_usage, usage_in
from pamer_lab.trajectory.shared.vocabulary import call_of, calls_beside, failure, plain_word, role_of

NAME = "agent-stream-json"
USERS = frozenset("usermessage userprompt prompt".split())
AGENTS = frozenset("assistantmessage agentmessage".split())
CALLS = frozenset("toolcall tooluse functioncall".split())
RESULTS = frozenset("toolresult tooloutput toolresponse functioncallresult functioncalloutput functionresult".split())
"""Line types as plain words: lower case, without `-` and `_`."""
CALL_IDS = ("toolCallId", "tool_call_id", "tool_id", "call_id", "callId", "toolUseId", "id")
TOOL_NAMES = ("toolName", "tool_name", "name", "tool", "toolId")
OUTPUTS = ("value", "output", "result", "content", "error", "text")
SESSION = {"session_id", "sessionId"}
CLOSING = ("completion", "result")
STARTS = ("system", "init", "session_start", "session_configured", "session_metadata")


def detect(document: Document) -> bool:
    first = head(document)
    return document.kind == "jsonl" and (any(map(_is_own, first)) or _is_headed_chat(first))


def _is_own(row: dict[str, Any]) -> bool:
    """A message or call on a line that names its session, or a call with a tool name or in a payload."""
    body, word = _body(row), plain_word(row.get("type"))
    if body is not row:
        return word in CALLS and "call_id" in body and bool({"tool", "toolName", "tool_name"} & body.keys())
    if word in CALLS:
        return bool({"toolName", "tool_name"} & row.keys()) or ("name" in row and bool(SESSION & row.keys()))
    return word == "message" and isinstance(row.get("role"), str) and bool(SESSION & row.keys()) and "message" not in row


def _is_headed_chat(first: list[dict[str, Any]]) -> bool:
    """A line about the session, then one message per line with tools as parts."""
    lines = first[1:]
    if (
        len(lines) < 2
        or {"role", "type", "messages", "working_dir"} & first[0].keys()
        or not all(isinstance(row.get("role"), str) for row in lines)
    ):
        return False
    said = [role_of(row.get("role")) for row in lines]
    return "assistant" in said and not any("type" in row for row in lines)


def _body(row: dict[str, Any]) -> dict[str, Any]:
    return row["payload"] if isinstance(row.get("payload"), dict) else row


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
        log.stamp(row.get("timestamp") or row.get("createdAt"))
    _flush(log, pieces, "end")
    yield log.finish()


def _flush(log: Log, pieces: list[str], where: str) -> None:
    if pieces:
        log.agent("".join(pieces), where)
        pieces.clear()


def _line(log: Log, pieces: list[str], row: dict[str, Any], where: str) -> None:
    body = _body(row)
    kind = get.text(row, "type") or ("message" if role_of(body.get("role")) else get.text(body, "role"))
    word = plain_word(kind)
    if word == "message" or word in USERS or word in AGENTS:
        _message(log, pieces, body, "assistant" if word in AGENTS else "user" if word in USERS else role_of(body.get("role")), where)
    elif word in ("reasoning", "thinking", "thought"):
        log.open(where).thinking.append(get.text(body, "text", "content", "thinking"))
    elif word in CALLS:
        log.call(call_of({**body, "id": get.text(body, *CALL_IDS), "name": get.text(body, *TOOL_NAMES)}), where)
    elif word in RESULTS:
        _result(log, body, where)
    elif kind in STARTS:
        log.draft.model = log.draft.model or get.text(body, "model")
        log.draft.tools = log.draft.tools or read_tools(body.get("tools"))
        log.draft.meta |= {"session": get.text(body, *SESSION), "cwd": body.get("cwd")}
    elif kind in CLOSING:
        _close(log, body)
    elif kind == "token_count" and log.last:
        log.last.usage = usage_in(body, sent="input_tokens", given="output_tokens", cached="cached_input_tokens") or log.last.usage
    elif text := get.text(body, "message", "text", "error", "reason", "content"):
        log.mark("note", text, event=kind)
    elif not kind and where == "line 1":
        log.draft.meta |= {"session": get.text(body, "id", *SESSION), "cwd": body.get("cwd")}
    else:
        log.draft.unread(kind or "no type", where)


def _message(log: Log, pieces: list[str], body: dict[str, Any], role: str, where: str) -> None:
    given = next((body[key] for key in ("text", "content", "message") if body.get(key) is not None), None)
    if role == "tool" and not get.items(body, "content"):
        _result(log, body, where)
    elif role != "assistant":
        log.say("system" if role == "system" else "user", given, where)
    elif body.get("delta") is True and isinstance(given, str):
        pieces.append(given)
    else:
        if log.turn and (log.turn.texts or log.turn.calls):  # a turn with only thoughts continues with what follows
            log.close()
        turn = log.agent(given, where)
        for call in read_calls(calls_beside(body)):
            log.call(call, where)
        turn.usage = read_usage(body.get("usage"))


def _result(log: Log, body: dict[str, Any], where: str) -> None:
    output = next((body[key] for key in OUTPUTS if body.get(key) is not None), None)
    if isinstance(output, dict) and isinstance(output.get("message"), str):
        output = output["message"]
    failed = failure(body) or body.get("error") is not None
    own = get.text(body, *CALL_IDS) if {*CALL_IDS[:-1]} & body.keys() or get.text(body, "id") in log.asked else ""
    rest = get.facts(body, "status", "value", "output")
    log.answer(own, output, where, failed=failed, name=get.text(body, *TOOL_NAMES[:-2]), rest=rest)


def _close(log: Log, row: dict[str, Any]) -> None:
    """Totals of the run, and its closing text if no message contains it."""
    stats = get.obj(row, "stats")
    log.draft.usage = read_usage(row.get("usage")) or usage_in(stats, sent="input_tokens", given="output_tokens", cached="cached")
    log.draft.meta |= get.facts(row, "numTurns", "durationMs", "status")
    text = get.text(row, "finalText", "result", "response")
    said = {part for step in log.steps if isinstance(step, Turn) for part in step.texts}
    if text and text not in said:
        log.mark("note", text, event=get.text(row, "type"))
    if fault := row.get("error"):
        log.mark("note", get.text(fault, "message") or json_text(fault), event="error")
