"""Continue sessions (IDE and CLI): a `history` of items that hold a message, its context and the states of its calls.

Results are messages of their own (IDE) or only in the states (CLI); each is read once. Context items are kept as notes.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls
from pamer_lab.trajectory.shared.log import Log
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.shared.usage import priced, read_usage

NAME = "continue-session"
FAILED = ("errored", "error", "canceled", "cancelled")


def detect(document: Document) -> bool:
    root = one_value(document)
    first = get.first(root, "history")
    return isinstance(first.get("message"), dict) and "role" in first["message"]


def read(document: Document) -> Iterator[Draft]:
    root = document.root
    draft = Draft(NAME, orphans="as_user")
    log = Log(draft)
    items = [item for item in get.placed(get.items(root, "history"), "history") if isinstance(item[1], dict)]
    bodies = [get.obj(item, "message") for _, item in items]
    told = {get.text(body, "toolCallId", "tool_call_id") for body in bodies if body.get("role") == "tool"}
    for where, item in items:
        _item(log, item, get.obj(item, "message"), told, where)
    usage = get.obj(root, "usage")
    draft.usage = priced(read_usage(usage), usage.get("totalCost"))
    draft.model = get.text(root, "chatModelTitle", "model")
    draft.meta |= {"session": root.get("sessionId"), "title": root.get("title"), "cwd": root.get("workspaceDirectory")}
    yield log.finish()


def _item(log: Log, item: dict[str, Any], body: dict[str, Any], told: set[str], where: str) -> None:
    for context in get.objects(item, "contextItems"):
        log.mark("note", get.text(context, "content"), context=get.text(context, "name", "description"))
    match body.get("role"):
        case "assistant":
            if log.turn is None or log.turn.texts or log.turn.calls:
                log.close()  # thinking that came as a message of its own belongs to this one
            turn = log.agent(body.get("content") or None, where, thinking=get.text(get.obj(item, "reasoning"), "text"))
            turn.usage = read_usage(body.get("usage"))
            for call in read_calls(body.get("toolCalls") or body.get("tool_calls")):
                log.call(call, where)
            for state in get.objects(item, "toolCallStates"):
                _state(log, state, told, where)
        case "thinking":
            log.close()
            content = content_of(log.draft, body.get("content"), where)
            log.open(where).thinking += content.texts + content.thinking
        case "tool":
            log.answer(get.text(body, "toolCallId", "tool_call_id"), body.get("content"), where, rest=get.facts(body, "status"))
        case "system":
            log.say("system", body.get("content"), where)
        case _:
            log.say("user", body.get("content"), where)
    if get.items(item, "promptLogs"):
        log.draft.unread("promptLogs", where)
    if summary := get.text(item, "conversationSummary"):
        log.mark("compaction", summary)


def _state(log: Log, state: dict[str, Any], told: set[str], where: str) -> None:
    own = get.text(state, "toolCallId") or get.text(get.obj(state, "toolCall"), "id")
    output = state.get("output")
    if own in told or (output is None and state.get("status") in (None, "generating", "generated", "calling")):
        return
    texts = [get.text(part, "content") for part in get.objects(state, "output")]
    failed = state.get("status") in FAILED
    log.answer(own, "\n".join(texts) if texts else output, where, failed=failed, rest={"status": state.get("status")})
