"""Claude Agent SDK messages, as `claude -p --output-format stream-json` and its wrappers log them: one object per line, in file order.

Wrappers may put the payload of `init` and `result` lines under `message`. `init` gives tools and model, `result` usage and cost of the run.
The prompt is often not logged, so a trace may begin with the assistant. Each side agent (`parent_tool_use_id`) is one `subagent` event.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.anthropic_lines import Line, SideAgents, to_steps
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.rows import Row, head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, add_steps, keep_none
from pamer_lab.trajectory.shared.usage import priced, read_usage

NAME = "claude-agent-sdk-stream"
QUIET = frozenset(
    "stream_event rate_limit_event keep_alive tool_progress auth_status system/hook_started system/hook_response system/hook_progress "
    "system/task_started system/task_progress system/task_notification system/files_persisted control_request control_response".split()
)
"""Lines that are not part of the conversation, or repeat it piece by piece."""


def detect(document: Document) -> bool:
    first = head(document)
    if any("parentUuid" in row for row in first):
        return False
    return any((row.get("type") == "system" and _payload(row).get("subtype") == "init") or _is_turn(row) for row in first)


def _is_turn(row: dict[str, Any]) -> bool:
    body = get.obj(row, "message")
    return row.get("type") == body.get("role") == "assistant" and isinstance(body.get("content"), list)


def _payload(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a system or result line, which a wrapper may have put under `message`."""
    body = row.get("message")
    return body if isinstance(body, dict) and row.get("type") in ("system", "result") else row


def read(document: Document) -> Iterator[Draft]:
    groups = _sessions(rows(document))
    for number, group in enumerate(groups):
        draft = Draft(NAME, where=f"session {number + 1}" if len(groups) > 1 else "", orphans="as_user")
        if number == 0:
            warn_strays(draft, document)
        yield _read_session(draft, group)


def _sessions(found: list[Row]) -> list[list[Row]]:
    """Lines by session id; lines without one belong to the session named last before them."""
    groups: dict[str, list[Row]] = {}
    current = ""
    for where, row in found:
        session = get.text(_payload(row), "session_id") or get.text(row, "session_id")
        if session and not current and "" in groups:
            groups[session] = groups.pop("")
        current = session or current
        groups.setdefault(current, []).append((where, row))
    return [group for group in groups.values() if any(row.get("type") == "assistant" for _, row in group)] or list(groups.values())[:1]


def _read_session(draft: Draft, group: list[Row]) -> Draft:
    lines: list[Line | Mark] = []
    sides = SideAgents(draft, lines)
    ended = ""
    for where, row in group:
        kind, body = row.get("type"), row.get("message")
        if kind in ("user", "assistant") and isinstance(body, dict):
            before = lines[-1] if lines and kind == "assistant" else None
            key = before.key if isinstance(before, Line) and _is_piece(before) else get.text(body, "id")
            line = Line(where, "assistant" if kind == "assistant" else "user", body, key)
            parent = get.text(row, "parent_tool_use_id") or get.text(body, "parent_tool_use_id")
            if parent:
                sides.add(parent, line, call=parent)
                continue
            lines.append(line)
            if ended and kind == "assistant":
                draft.warn(ended, "the run continued after this result, so its usage and cost do not cover all of it")
                ended = ""
        elif kind == "system":
            _add_system(draft, lines, _payload(row), where)
        elif kind == "result":
            _add_result(draft, _payload(row))
            ended = where
        else:
            draft.passed(str(kind), where, QUIET)
    sides.close()
    add_steps(draft, to_steps(draft, lines))
    models = (get.text(line.body, "model") for line in lines if isinstance(line, Line))
    draft.model = draft.model or next(filter(None, models), "")
    return draft


def _is_piece(line: Line) -> bool:
    """Whether the next line continues this message: Qwen Code gives each block a separate id and counts tokens only in the last."""
    usage = line.body.get("usage")
    counted = not isinstance(usage, dict) or any(usage.values()) or not {"input_tokens", "output_tokens"} <= usage.keys()
    return line.role == "assistant" and bool(line.key) and not counted and line.body.get("stop_reason") is None


def _add_system(draft: Draft, lines: list[Line | Mark], body: dict[str, Any], where: str) -> None:
    match body.get("subtype"):
        case "init":
            draft.tools = read_tools(body.get("tools")) or draft.tools
            draft.model = get.text(body, "model") or draft.model
            for key, name in (("session_id", "session"), ("cwd", "cwd"), ("claude_code_version", "version")):
                draft.meta.setdefault(name, body.get(key))
        case "compact_boundary":
            facts = dict(get.obj(body, "compact_metadata"))
            facts["tokens_before"] = get.as_count(facts.pop("pre_tokens", None))
            facts["tokens_after"] = get.as_count(facts.pop("post_tokens", None))
            lines.append(Mark("compaction", get.text(body, "content"), facts, keep_none))
        case "status":
            if body.get("status"):
                lines.append(Mark("note", get.text(body, "status"), {"system": "status"}))
        case subtype if text := get.text(body, "content"):
            lines.append(Mark("note", text, {"system": subtype}))
        case subtype:
            draft.passed(f"system/{subtype}", where, QUIET)


def _add_result(draft: Draft, body: dict[str, Any]) -> None:
    """Usage and cost of the run; a resumed session has several results, and the last one's figures are kept."""
    draft.usage = priced(read_usage(body.get("usage")), body.get("total_cost_usd")) or draft.usage
    draft.meta |= get.facts(body, "num_turns", "duration_ms", "is_error", "result", "modelUsage") | {"status": body.get("subtype")}
