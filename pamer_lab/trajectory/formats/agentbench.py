"""AgentBench runs: one sample per line, its history under `output`, the model's role named `agent`.

Actions are text in the model's messages; they are data and are never run.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.formats.rows import head, rows, text_of
from pamer_lab.trajectory.parts import read_content

NAME = "agentbench-runs"


def detect(document: Document) -> bool:
    first = head(document, 1)
    history = _history(first[0]) if document.kind in ("json", "jsonl") and first else []
    return bool(history) and isinstance(history[0], dict) and "role" in history[0]


def _history(row: dict[str, Any]) -> list[Any]:
    output = row.get("output")
    history = output.get("history") if isinstance(output, dict) else None
    return history if isinstance(history, list) else []


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    for where, row in found:
        draft = Draft(NAME, where=where if len(found) > 1 else "")
        for number, message in enumerate(_history(row)):
            if not isinstance(message, dict):
                draft.warn(f"history[{number}]", "is not a message; left out")
                continue
            text = read_content(message.get("content")).text
            if message.get("role") in ("agent", "assistant"):
                draft.assistant(text)
            elif message.get("role") == "system":
                draft.system(text)
            else:
                draft.user(text)
        output = row["output"] if isinstance(row.get("output"), dict) else {}
        draft.task_id = text_of(row.get("index"))
        draft.question_id = f"agentbench/{draft.task_id}" if draft.task_id else ""
        draft.meta = {"status": output.get("status"), "result": output.get("result"), "error": row.get("error"), "info": row.get("info")}
        yield draft
