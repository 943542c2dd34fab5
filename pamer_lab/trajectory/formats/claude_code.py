"""Claude Code session transcripts: one JSON object per line, in the order of their `parentUuid` chain, not of the file.

A compaction is an event with its token counts and removes nothing; the summary after it stays a user message. After a rewind, abandoned
messages are kept and a `context_edit` event marks the place. Each side agent is one `subagent` event with all its text, or a trace if the
file holds nothing else (`agent-*.jsonl`). `meta["other_lines"]` counts hook and snapshot lines; `toolUseResult`, a copy, is not read.
"""

from collections.abc import Iterator
from typing import Any, Literal

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.anthropic_lines import Line, SideAgents, to_steps
from pamer_lab.trajectory.shared.chain import in_causal_order, parent_of, session_of, sessions
from pamer_lab.trajectory.shared.rows import Row, head, rows, warn_strays
from pamer_lab.trajectory.shared.steps import Mark, add_steps, keep_none, rewound

NAME = "claude-code-jsonl"
QUIET = frozenset(
    "file-history-snapshot last-prompt queue-operation custom-title ai-title agent-name agent-color pr-link mode tag summary "
    "permission-mode worktree-state system/stop_hook_summary system/turn_duration progress/bash_progress progress/hook_progress "
    "progress/mcp_progress progress/waiting_for_task progress/query_update progress/search_results_received".split()
)
"""Lines that are not part of the conversation."""
MADE_BY_PROGRAM = "<synthetic>"
"""The model name of assistant lines that Claude Code wrote itself, such as an API error."""


def detect(document: Document) -> bool:
    """Qwen Code's log has the same envelope, but its messages hold Gemini's `parts`, which this reader would lose."""
    found = [row for row in head(document) if "parentUuid" in row and "sessionId" in row]
    bodies = [body for row in found if (body := get.obj(row, "message"))]
    return bool(found) and (not bodies or any("content" in body for body in bodies))


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    groups = sessions(found)
    loose = [row for row in found if not session_of(row[1]) and not isinstance(row[1].get("message"), dict)]
    for number, group in enumerate(groups):
        draft = Draft(NAME, where=f"session {number + 1}" if len(groups) > 1 else "", orphans="as_user")
        if number == 0:
            _add_loose(draft, loose)
            warn_strays(draft, document)
        yield _read_session(draft, group)


def _read_session(draft: Draft, group: list[Row]) -> Draft:
    only_side = all(row.get("isSidechain") for _, row in group if row.get("type") in ("user", "assistant"))
    ordered = in_causal_order(draft, group)
    builder = _Builder(draft, ordered)
    for where, row in ordered:
        builder.add(where, row, side=bool(row.get("isSidechain")) and not only_side)
    _close(draft, builder, ordered, only_side)
    add_steps(draft, to_steps(draft, builder.lines))
    return draft


class _Builder:
    """Sorts a session's lines into messages, events, side agents and others."""

    def __init__(self, draft: Draft, ordered: list[Row]) -> None:
        self.draft = draft
        self.lines: list[Line | Mark] = []
        self.sides = SideAgents(draft, self.lines)
        self._rows = {row["uuid"]: row for _, row in ordered if isinstance(row.get("uuid"), str)}
        self._last = ""
        """Key of the newest assistant message."""
        self._boundary = False

    def add(self, where: str, row: dict[str, Any], *, side: bool) -> None:
        body = row.get("message")
        kind = row.get("type")
        if kind in ("user", "assistant") and isinstance(body, dict):
            line = Line(
                where, "assistant" if kind == "assistant" else "user", body, get.text(body, "id"), get.as_time(row.get("timestamp"))
            )
            if side:
                agent = get.text(row, "agentId") or self._root(row)
                self.sides.add(agent, line, agent=agent)
            else:
                self._message(line, row)
        elif kind in ("tool_use", "tool_result"):
            role: Literal["assistant", "user"] = "assistant" if kind == "tool_use" else "user"
            self.lines.append(Line(where, role, {"content": [row]}, "", get.as_time(row.get("timestamp"))))
        elif kind == "system":
            self._system(where, row)
        elif kind == "attachment" and isinstance(row.get("attachment"), dict):
            self._attachment(where, row["attachment"])
        elif kind == "queue-operation" and isinstance(row.get("content"), str):
            self.lines.append(Mark("note", row["content"], {"queue": row.get("operation")}))
        elif kind == "progress" and isinstance(row.get("data"), dict):
            self._progress(where, row)
        else:
            self.draft.passed(str(kind), where, QUIET)

    def _message(self, line: Line, row: dict[str, Any]) -> None:
        if line.role == "assistant":
            self._last = line.key
            if line.body.get("model") == MADE_BY_PROGRAM:
                self.draft.warn(line.where, "this assistant message was written by Claude Code, not by the model")
        elif row.get("isCompactSummary") and not self._boundary:
            self.lines.append(Mark("compaction", "", {}, keep_none))
        elif self._last and _is_prompt(line.body) and self._went_back(row):
            self.lines.append(rewound(self.draft, line.where, row.get("parentUuid")))
        self._boundary = False
        self.lines.append(line)

    def _went_back(self, row: dict[str, Any]) -> bool:
        """Whether this prompt follows an earlier assistant message than the newest one."""
        seen = 0
        parent = parent_of(row)
        while parent and (above := self._rows.get(parent)) is not None and seen < len(self._rows):
            body = above.get("message")
            if above.get("type") == "assistant" and isinstance(body, dict):
                return get.text(body, "id") != self._last
            if above.get("subtype") == "compact_boundary":
                return False
            parent, seen = parent_of(above), seen + 1
        return False

    def _root(self, row: dict[str, Any]) -> str:
        for _ in range(len(self._rows)):
            above = self._rows.get(parent_of(row))
            if above is None or not above.get("isSidechain"):
                break
            row = above
        return get.text(row, "uuid")

    def _system(self, where: str, row: dict[str, Any]) -> None:
        facts = dict(get.obj(row, "compactMetadata", "microcompactMetadata"))
        before = get.as_count(facts.pop("preTokens", None))
        match row.get("subtype"):
            case "compact_boundary":
                self._boundary = True
                after = get.as_count(facts.pop("postTokens", None))
                facts = {"trigger": facts.pop("trigger", None), "details": facts or None, "tokens_before": before, "tokens_after": after}
                self.lines.append(Mark("compaction", get.text(row, "content"), facts, keep_none))
            case "microcompact_boundary":
                saved = get.count(facts, "tokensSaved")
                after = before - saved if before is not None and saved is not None else None
                facts = {"details": facts or None, "tokens_before": before, "tokens_after": after}
                self.lines.append(Mark("context_edit", get.text(row, "content"), facts))
            case subtype if isinstance(row.get("content"), str) and row["content"]:
                self.lines.append(Mark("note", row["content"], {"system": subtype}))
            case subtype:
                self.draft.passed(f"system/{subtype}", where, QUIET)

    def _attachment(self, where: str, attachment: dict[str, Any]) -> None:
        if attachment.get("type") == "queued_command" and attachment.get("prompt"):
            self.lines.append(Line(where, "user", {"content": attachment["prompt"]}))
        else:
            self.lines.append(Mark("note", json_text(attachment), {"attachment": attachment.get("type")}))

    def _progress(self, where: str, row: dict[str, Any]) -> None:
        """Newer versions report a side agent's messages inside progress lines."""
        data = row["data"]
        inner = get.obj(data, "message")
        body = inner.get("message")
        if data.get("type") == "agent_progress" and isinstance(body, dict):
            line = Line(where, "assistant" if inner.get("type") == "assistant" else "user", body, get.text(body, "id"))
            agent = get.text(data, "agentId")
            self.sides.add(agent, line, agent=agent, call=row.get("parentToolUseID"))
        else:
            self.draft.passed(f"progress/{data.get('type')}", where, QUIET)


def _is_prompt(body: dict[str, Any]) -> bool:
    return not any(part.get("type") == "tool_result" for part in get.objects(body, "content"))


def _close(draft: Draft, builder: _Builder, ordered: list[Row], only_side: bool) -> None:
    builder.sides.close()
    models = (row["message"].get("model") for _, row in ordered if isinstance(row.get("message"), dict))
    draft.model = next((model for model in models if isinstance(model, str) and model != MADE_BY_PROGRAM), "")
    facts: dict[str, Any] = {}
    for _, row in ordered:
        for key, name in (("sessionId", "session"), ("cwd", "cwd"), ("gitBranch", "branch"), ("version", "version"), ("agentId", "agent")):
            if name not in facts and isinstance(row.get(key), str) and (name != "agent" or only_side):
                facts[name] = row[key]
    draft.meta.update(facts)


def _add_loose(draft: Draft, loose: list[Row]) -> None:
    """Lines that belong to no session: titles are kept, the rest is counted."""
    titles: list[str] = []
    for where, row in loose:
        title = row.get("summary") if row.get("type") == "summary" else None
        if isinstance(title, str):
            titles.append(title)
        else:
            draft.passed(str(row.get("type")), where, QUIET)
    draft.meta["titles"] = titles
