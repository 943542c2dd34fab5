"""BFCL multi-turn results with their inference log: per turn a query and numbered steps of assistant and tool messages.

Calls are `{function: arguments}` in the assistant's content. What the assistant said along with its calls is only in
the last prompt, which the log repeats as Python text; that text is kept as a note. State snapshots and handler lines
are counted in `meta`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import first_row, trace_rows
from pamer_lab.trajectory.values import ToolCall, Usage

NAME = "bfcl-multi-turn"


def detect(document: Document) -> bool:
    first = first_row(document)
    return isinstance(first.get("inference_log"), list) and "result" in first


def read(document: Document) -> Iterator[Draft]:
    for where, row in trace_rows(document):
        draft = Draft(NAME, where=where, orphans="as_user")
        _Log(draft, row).read(get.items(row, "inference_log"))
        draft.task_id = get.text(row, "id")
        yield draft


class _Log:
    def __init__(self, draft: Draft, row: dict[str, Any]) -> None:
        self.draft = draft
        self.row = row
        self.other: Counter[str] = Counter()
        self.prompt: Any = None

    def read(self, log: list[Any]) -> None:
        turn = 0
        for number, entry in enumerate(log):
            if not isinstance(entry, dict):
                self.other["state snapshots"] += 1
                continue
            for query in get.objects(entry, "begin_of_turn_query"):
                text = content_of(self.draft, query.get("content"), f"inference_log[{number}].begin_of_turn_query").text
                (self.draft.system if query.get("role") == "system" else self.draft.user)(text)
            for step, key in enumerate(key for key in entry if key.startswith("step_") and isinstance(entry[key], list)):
                for item in get.objects(entry, key):
                    self._add(item, f"inference_log[{number}].{key}", self._usage(turn, step))
            turn += 1
        if self.prompt is not None:
            self.draft.event("note", json_text(self.prompt), of="the last prompt, as the log wrote it")
        self.draft.meta["other_entries"] = dict(sorted(self.other.items()))

    def _add(self, item: dict[str, Any], where: str, usage: Usage | None) -> None:
        content = item.get("content")
        match item.get("role"):
            case "assistant" if isinstance(content, list):
                calls = [ToolCall("", name, json_text(given)) for call in get.objects(item, "content") for name, given in call.items()]
                self.draft.assistant("", calls, usage=usage, where=where)
            case "assistant":
                self.draft.assistant(json_text(content or ""), usage=usage, where=where)
            case "tool":
                self.draft.tool("", json_text(content or ""), where=where)
            case "inference_input" if isinstance(content, dict):
                self.draft.tools = self.draft.tools or read_tools(content.get("tools"))
                self.prompt = content.get("message")
            case role:
                self.other[get.as_text(role)] += 1

    def _usage(self, turn: int, step: int) -> Usage | None:
        """The counts are lists of lists: one list per turn, one number per step."""
        found: list[int] = []
        for key in ("input_token_count", "output_token_count"):
            value = self.row.get(key)
            for place in (turn, step):
                value = value[place] if isinstance(value, list) and place < len(value) else None
            found.append(get.as_count(value) or 0)
        return Usage(*found) if any(found) else None
