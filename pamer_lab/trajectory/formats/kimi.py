"""Kimi CLI sessions: an event log of what was put into the context.

`context.append_message` lines are prompts; a loop step (`step.begin` to `step.end`) is one turn with its parts, calls
and usage. A compaction is an event with its token counts, and the summary is the user message it became.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.fields import read_tools
from pamer_lab.trajectory.formats.rows import head, number_of, rows, text_of
from pamer_lab.trajectory.formats.steps import Mark, Result, Said, Step, Turn, add_steps
from pamer_lab.trajectory.parts import read_content
from pamer_lab.trajectory.values import Message, ToolCall, Usage

NAME = "kimi-cli-jsonl"


def detect(document: Document) -> bool:
    return document.kind == "jsonl" and any(text_of(row.get("type")).startswith("context.append_") for row in head(document))


def read(document: Document) -> Iterator[Draft]:
    reader = _Reader(Draft(NAME, orphans="as_user"))
    for where, row in rows(document):
        reader.add(where, row)
    add_steps(reader.draft, [step for step in reader.steps if not isinstance(step, Turn) or step.texts or step.calls or step.thinking])
    reader.draft.meta["other_lines"] = dict(sorted(reader.other.items()))
    yield reader.draft


class _Reader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.steps: list[Step] = []
        self.turns: dict[str, Turn] = {}
        self.other: Counter[str] = Counter()

    def add(self, where: str, row: dict[str, Any]) -> None:
        match row.get("type"):
            case "config.update":
                if text_of(row.get("systemPrompt")):
                    self.steps.append(Said("system", row["systemPrompt"]))
            case "tools.set_active_tools":
                self.draft.tools = read_tools(row.get("names")) or self.draft.tools
            case "llm.tools_snapshot":
                self.draft.tools = read_tools(row.get("tools")) or self.draft.tools
            case "llm.request":
                self.draft.model = self.draft.model or text_of(row.get("model"))
            case "context.append_message" if isinstance(row.get("message"), dict):
                content = read_content(row["message"].get("content"))
                role = "system" if row["message"].get("role") == "system" else "user"
                self.steps.append(Said("system" if role == "system" else "user", content.text, content.images))
            case "context.append_loop_event" if isinstance(row.get("event"), dict):
                self._loop(where, row["event"])
            case "context.apply_compaction":
                before, after = number_of(row.get("tokensBefore")), number_of(row.get("tokensAfter"))
                facts = {"tokens_before": before, "tokens_after": after, "compacted": row.get("compactedCount")}
                users = partial(_keep_users, number_of(row.get("keptUserMessageCount")) or 0)
                self.steps.append(Mark("compaction", text_of(row.get("summary")), facts, users))
                if text_of(row.get("contextSummary")):
                    self.steps.append(Said("user", row["contextSummary"]))
            case kind:
                self.other[str(kind)] += 1

    def _loop(self, where: str, event: dict[str, Any]) -> None:
        kind = event.get("type")
        key = text_of(event.get("uuid")) if kind in ("step.begin", "step.end") else text_of(event.get("stepUuid"))
        if kind == "tool.result":
            given = event.get("result")
            result: dict[str, Any] = given if isinstance(given, dict) else {"output": given}
            failed = bool(result.get("isError") or result.get("error"))
            content = result.get("output", result.get("error"))
            shown = read_content(content) if isinstance(content, str | list) else read_content(json_text(content))
            self.steps.append(Result(text_of(event.get("toolCallId")), shown.text, where, shown.images, failed))
            return
        turn = self.turns.get(key)
        if turn is None:
            turn = self.turns[key] = Turn(where)
            self.steps.append(turn)
        if kind == "content.part":
            content = read_content(event.get("part"))
            turn.texts += content.texts
            turn.thinking += content.thinking
            turn.images += content.images
        elif kind == "tool.call":
            turn.calls.append(ToolCall(text_of(event.get("toolCallId")), text_of(event.get("name")), json_text(event.get("args"))))
        elif kind == "step.end" and isinstance(usage := event.get("usage"), dict):
            keys = ("inputOther", "inputCacheRead", "inputCacheCreation", "output")
            sent, read, written, given_out = (number_of(usage.get(name)) or 0 for name in keys)
            turn.usage = Usage(sent + read + written, given_out, read)


def _keep_users(count: int, messages: Sequence[Message]) -> list[int]:
    """The newest user messages, as many as the compaction says it kept."""
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    return users[-count:] if count else []
