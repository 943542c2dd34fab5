"""Kimi CLI sessions: an event log of what was put into the context.

`context.append_message` lines are prompts; a loop step (`step.begin` to `step.end`) is one turn with its parts, calls and
usage. A compaction is an event with its token counts, and its summary becomes a user message.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_call, read_tools
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import head, rows
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.shared.usage import usage_in
from pamer_lab.trajectory.values import Message

NAME = "kimi-cli-jsonl"
QUIET = frozenset(
    "metadata usage.record turn.prompt turn.cancel full_compaction.begin full_compaction.complete plan_mode.enter plan_mode.exit "
    "permission.record_approval_result".split()
)
"""Lines that add nothing to the conversation."""


def detect(document: Document) -> bool:
    return document.kind == "jsonl" and any(get.text(row, "type").startswith("context.append_") for row in head(document))


def read(document: Document) -> Iterator[Draft]:
    reader = _Reader(Draft(NAME, orphans="as_user"))
    for where, row in rows(document):
        reader.add(where, row)
    add_steps(reader.draft, [step for step in reader.steps if not isinstance(step, Turn) or step.texts or step.calls or step.thinking])
    yield reader.draft


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.steps: list[Step] = []
        self.turns: dict[str, Turn] = {}

    def add(self, where: str, row: dict[str, Any]) -> None:
        match row.get("type"):
            case "config.update":
                if prompt := get.text(row, "systemPrompt"):
                    self.steps.append(Said("system", prompt))
            case "tools.set_active_tools":
                self.draft.tools = read_tools(row.get("names")) or self.draft.tools
            case "llm.tools_snapshot":
                self.draft.tools = read_tools(row.get("tools")) or self.draft.tools
            case "llm.request":
                self.draft.model = self.draft.model or get.text(row, "model")
            case "context.append_message" if isinstance(row.get("message"), dict):
                content = content_of(self.draft, row["message"].get("content"), where)
                role = row["message"].get("role")
                self.steps.append(Said("system" if role == "system" else "user", content.text, content.images))
            case "context.append_loop_event" if isinstance(row.get("event"), dict):
                self._loop(where, row["event"])
            case "context.apply_compaction":
                before, after = get.count(row, "tokensBefore"), get.count(row, "tokensAfter")
                facts = {"tokens_before": before, "tokens_after": after, "compacted": row.get("compactedCount")}
                users = partial(_keep_users, get.count(row, "keptUserMessageCount") or 0)
                self.steps.append(Mark("compaction", get.text(row, "summary"), facts, users))
                if summary := get.text(row, "contextSummary"):
                    self.steps.append(Said("user", summary))
            case kind:
                self.draft.passed(str(kind), where, QUIET)

    def _loop(self, where: str, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "tool.result":
            self._result(where, event)
            return
        key = get.text(event, "uuid" if kind in ("step.begin", "step.end") else "stepUuid")
        turn = self.turns.get(key)
        if turn is None:
            turn = self.turns[key] = Turn(where)
            self.steps.append(turn)
        match kind:
            case "content.part":
                turn.add(content_of(self.draft, event.get("part"), where))
            case "tool.call":
                turn.calls.append(read_call(event, id="toolCallId", arguments="args"))
            case "step.end":
                sent = "inputOther inputCacheRead inputCacheCreation"
                turn.usage = usage_in(event.get("usage"), sent=sent, given="output", cached="inputCacheRead")

    def _result(self, where: str, event: dict[str, Any]) -> None:
        given = event.get("result")
        result: dict[str, Any] = given if isinstance(given, dict) else {"output": given}
        content = result.get("output", result.get("error"))
        shown = content_of(self.draft, content if isinstance(content, str | list) else json_text(content), where)
        failed = bool(result.get("isError") or result.get("error"))
        self.steps.append(Result(get.text(event, "toolCallId"), shown.text, where, shown.images, failed))


def _keep_users(count: int, messages: Sequence[Message]) -> list[int]:
    """Indices of the newest `count` user messages, which the compaction kept."""
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    return users[-count:] if count else []
