"""Claude Agent SDK messages, as `claude -p --output-format stream-json` and its wrappers log them.

One object per line, `type` system, user, assistant or result; there is no chain, so order is the file's. The payload of
`init` and `result` lines stands in the line itself or under `message`. `init` gives tools and model, `result` usage and
cost of the run. The prompt is often not logged, so a trace may begin with the assistant. Messages of side agents
(`parent_tool_use_id`) become one `subagent` event each.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.fields import read_tools, read_usage
from pamer_lab.trajectory.formats.anthropic_lines import Line, to_steps, transcript
from pamer_lab.trajectory.formats.rows import Row, head, number_of, rows, strays, text_of
from pamer_lab.trajectory.formats.steps import Mark, add_steps, keep_none
from pamer_lab.trajectory.values import Usage

NAME = "claude-agent-sdk-stream"
TYPES = (
    "system",
    "user",
    "assistant",
    "result",
    "stream_event",
    "control_request",
    "control_response",
    "rate_limit_event",
    "tool_progress",
)


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl"):
        return False
    first = head(document)
    known = [row for row in first if row.get("type") in TYPES]
    if not known or any("parentUuid" in row for row in first):
        return False
    return any(_payload(row).get("subtype") == "init" or _is_turn(row) for row in known)


def _is_turn(row: dict[str, Any]) -> bool:
    body = row.get("message")
    return (
        row.get("type") == "assistant"
        and isinstance(body, dict)
        and body.get("role") == "assistant"
        and isinstance(body.get("content"), list)
    )


def _payload(row: dict[str, Any]) -> dict[str, Any]:
    """What a system or result line says, whether or not a wrapper put it under `message`."""
    body = row.get("message")
    return body if isinstance(body, dict) and row.get("type") in ("system", "result") else row


def read(document: Document) -> Iterator[Draft]:
    groups = _sessions(rows(document))
    for number, group in enumerate(groups):
        draft = Draft(NAME, where=f"session {number + 1}" if len(groups) > 1 else "", orphans="as_user")
        if number == 0:
            for where in strays(document):
                draft.warn(where, "is not an object; left out")
        yield _read_session(draft, group)


def _sessions(found: list[Row]) -> list[list[Row]]:
    """Lines by session id; lines without one belong to the session named last before them."""
    groups: dict[str, list[Row]] = {}
    current = ""
    for where, row in found:
        session = text_of(_payload(row).get("session_id") or row.get("session_id"))
        if session and not current and "" in groups:
            groups[session] = groups.pop("")
        current = session or current
        groups.setdefault(current, []).append((where, row))
    return [group for group in groups.values() if any(row.get("type") == "assistant" for _, row in group)] or list(groups.values())[:1]


def _read_session(draft: Draft, group: list[Row]) -> Draft:
    lines: list[Line | Mark] = []
    sides: dict[str, list[Line]] = {}
    places: dict[str, int] = {}
    other: Counter[str] = Counter()
    ended = ""
    for where, row in group:
        kind, body = row.get("type"), row.get("message")
        if kind in ("user", "assistant") and isinstance(body, dict):
            line = Line(where, "assistant" if kind == "assistant" else "user", body, text_of(body.get("id")))
            parent = text_of(row.get("parent_tool_use_id") or body.get("parent_tool_use_id"))
            if not parent:
                lines.append(line)
                if ended and kind == "assistant":
                    draft.warn(ended, "the run went on after this result, so its usage and cost are not of the whole run")
                    ended = ""
                continue
            if parent not in sides:
                places[parent] = len(lines)
                lines.append(Mark("subagent", "", {}))
            sides.setdefault(parent, []).append(line)
        elif kind == "system":
            _add_system(draft, lines, _payload(row), other)
        elif kind == "result":
            _add_result(draft, _payload(row))
            ended = where
        else:
            other[str(kind)] += 1
    for call, said in sides.items():
        turns = {line.key or line.where for line in said if line.role == "assistant"}
        lines[places[call]] = Mark("subagent", transcript(said), {"call": call, "lines": len(said), "turns": len(turns)})
    draft.meta["other_lines"] = dict(sorted(other.items()))
    add_steps(draft, to_steps(draft, lines))
    if not draft.model:
        models = (line.body.get("model") for line in lines if isinstance(line, Line))
        draft.model = next((model for model in models if isinstance(model, str)), "")
    return draft


def _add_system(draft: Draft, lines: list[Line | Mark], body: dict[str, Any], other: Counter[str]) -> None:
    match body.get("subtype"):
        case "init":
            draft.tools = read_tools(body.get("tools")) or draft.tools
            draft.model = text_of(body.get("model")) or draft.model
            for key, name in (("session_id", "session"), ("cwd", "cwd"), ("claude_code_version", "version")):
                draft.meta.setdefault(name, body.get(key))
        case "compact_boundary":
            given = body.get("compact_metadata")
            facts: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
            before, after = number_of(facts.pop("pre_tokens", None)), number_of(facts.pop("post_tokens", None))
            sizes = {"tokens_before": before, "tokens_after": after}
            lines.append(Mark("compaction", text_of(body.get("content")), {**facts, **sizes}, keep_none))
        case "status":
            if body.get("status"):
                lines.append(Mark("note", text_of(body["status"]), {"system": "status"}))
        case subtype if text_of(body.get("content")):
            lines.append(Mark("note", text_of(body["content"]), {"system": subtype}))
        case subtype:
            other[f"system/{subtype}"] += 1


def _add_result(draft: Draft, body: dict[str, Any]) -> None:
    """Usage and cost of the run; a resumed session has several results, and the last one's figures are kept."""
    usage = read_usage(body.get("usage"))
    cost = body.get("total_cost_usd")
    if isinstance(cost, int | float) and cost == cost:
        usage = msgspec.structs.replace(usage or Usage(), cost_usd=float(cost))
    draft.usage = usage or draft.usage
    for name in ("num_turns", "duration_ms", "is_error", "result", "subtype", "modelUsage"):
        draft.meta[name if name != "subtype" else "status"] = body.get(name)
