"""Codex TUI session logs: what passed between the interface and the agent, of which the agent's own events are the conversation.

Streaming deltas, redraws and key strokes are not read. The user's text stands only in operation lines, where the log has them;
otherwise the trace begins with the assistant. A command is a call, its end the result.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.responses_items import Items
from pamer_lab.trajectory.formats.rows import head, number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Result, Said, add_steps
from pamer_lab.trajectory.values import Usage

NAME = "codex-tui-session-log"


def detect(document: Document) -> bool:
    return document.kind == "jsonl" and any(row.get("dir") in ("meta", "to_tui", "from_tui") and "kind" in row for row in head(document, 5))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME, orphans="as_user")
    items = Items(draft)
    unread = 0
    for where, row in rows(document):
        payload = row.get("payload")
        body: dict[str, Any] = payload if isinstance(payload, dict) else {}
        message = body.get("msg")
        if row.get("kind") == "codex_event" and isinstance(message, dict):
            unread += not _add_event(items, message, where)
        elif row.get("kind") == "op" and isinstance(body.get("items"), list):
            for item in body["items"]:
                if isinstance(item, dict) and text_of(item.get("text")):
                    items.say(Said("user", item["text"]))
        elif row.get("kind") == "session_start":
            draft.model = text_of(row.get("model"))
            draft.meta["cwd"] = row.get("cwd")
        else:
            unread += 1
    draft.meta["other_lines"] = unread
    if not any(isinstance(step, Said) for step in items.steps):
        draft.warn("file", "the log holds the user's key strokes, not the prompts; they are missing")
    add_steps(draft, items.steps)
    yield draft


def _add_event(items: Items, message: dict[str, Any], where: str) -> bool:
    """Whether the event belongs to the conversation."""
    match message.get("type"):
        case "agent_message":
            items.add({"type": "message", "role": "assistant", "content": text_of(message.get("message"))}, where)
        case "agent_reasoning":
            items.add({"type": "reasoning", "content": text_of(message.get("text"))}, where)
        case "user_message":
            items.say(Said("user", text_of(message.get("message"))))
        case "exec_command_begin":
            arguments = {"command": message.get("command"), "cwd": message.get("cwd")}
            items.add({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": message.get("call_id")}, where)
        case "patch_apply_begin":
            items.add(
                {"type": "function_call", "name": "apply_patch", "arguments": message.get("changes"), "call_id": message.get("call_id")},
                where,
            )
        case "exec_command_end" | "patch_apply_end":
            items.close()
            text = "\n".join(filter(None, (text_of(message.get("stdout")), text_of(message.get("stderr")))))
            failed = message.get("exit_code") not in (None, 0) or message.get("success") is False
            items.steps.append(Result(text_of(message.get("call_id")), text or json_text(message.get("exit_code")), where, error=failed))
        case "token_count":
            names = ("input_tokens", "output_tokens", "cached_input_tokens")
            sent, given, cached = (number_of(message.get(key)) or 0 for key in names)
            if items.last is not None and items.last.usage is None and (sent or given):
                items.last.usage = Usage(sent, given, cached)
        case _:
            return False
    return True
