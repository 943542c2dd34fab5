"""Codex TUI session logs: the traffic between the interface and the agent; the agent's events make up the conversation.

Streaming deltas, redraws and keystrokes are not read. The user's text comes from operation lines or `user_message` events; if
the log has neither, the trace begins with the assistant. A command's start is a call, its end the result.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.responses_items import Items
from pamer_lab.trajectory.shared.rows import head, rows
from pamer_lab.trajectory.shared.steps import Result, Said, add_steps
from pamer_lab.trajectory.shared.usage import usage_in

NAME = "codex-tui-session-log"
QUIET = frozenset(
    "app_event insert_history key_event log_line op session_end event/agent_message_delta event/agent_reasoning_delta "
    "event/agent_reasoning_section_break event/exec_command_output_delta event/session_configured event/shutdown_complete "
    "event/task_complete event/task_started event/turn_diff".split()
)
"""What the interface did, and events that repeat others piece by piece."""


def detect(document: Document) -> bool:
    return document.kind == "jsonl" and any(row.get("dir") in ("meta", "to_tui", "from_tui") and "kind" in row for row in head(document, 5))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    items = Items(draft)
    for where, row in rows(document):
        body = get.obj(row, "payload")
        match row.get("kind"):
            case "codex_event" if isinstance(body.get("msg"), dict):
                if not _add_event(items, body["msg"], where):
                    draft.passed(f"event/{get.text(body['msg'], 'type')}", where, QUIET)
            case "op" if isinstance(body.get("items"), list):
                for text in filter(None, (get.text(item, "text") for item in body["items"])):
                    items.say(Said("user", text))
            case "session_start":
                draft.model = get.text(row, "model")
                draft.meta["cwd"] = row.get("cwd")
            case kind:
                draft.passed(str(kind), where, QUIET)
    if not any(isinstance(step, Said) for step in items.steps):
        draft.warn("file", "the log contains the user's keystrokes, not the prompts, which are missing")
    add_steps(draft, items.steps)
    yield draft


def _add_event(items: Items, message: dict[str, Any], where: str) -> bool:
    """Add an event to the conversation; False if it does not belong to it."""
    match message.get("type"):
        case "agent_message":
            items.add({"type": "message", "role": "assistant", "content": get.text(message, "message")}, where)
        case "agent_reasoning":
            items.add({"type": "reasoning", "content": get.text(message, "text")}, where)
        case "user_message":
            items.say(Said("user", get.text(message, "message")))
        case "exec_command_begin":
            arguments = get.facts(message, "command", "cwd")
            items.add({"type": "function_call", "name": "shell", "arguments": arguments, **get.facts(message, "call_id")}, where)
        case "patch_apply_begin":
            changes = message.get("changes")
            items.add({"type": "function_call", "name": "apply_patch", "arguments": changes, **get.facts(message, "call_id")}, where)
        case "exec_command_end" | "patch_apply_end":
            text = "\n".join(filter(None, (get.text(message, "stdout"), get.text(message, "stderr"))))
            failed = message.get("exit_code") not in (None, 0) or message.get("success") is False
            items.say(Result(get.text(message, "call_id"), text or json_text(message.get("exit_code")), where, error=failed))
        case "token_count":
            if items.last is not None and items.last.usage is None:
                items.last.usage = usage_in(message, sent="input_tokens", given="output_tokens", cached="cached_input_tokens")
        case _:
            return False
    return True
