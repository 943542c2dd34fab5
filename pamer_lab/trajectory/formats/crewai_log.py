"""CrewAI's `output_log_file` as JSON: one line when a task starts and one when it ends, with the agent and the output.

A task becomes a user message and its output an assistant message; the log does not record what the agent did in between.
"""

from collections.abc import Iterator

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import head, rows, warn_strays

NAME = "crewai-task-log"


def detect(document: Document) -> bool:
    return any({"task", "agent", "status"} <= row.keys() and row.get("status") == "completed" for row in head(document))


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME)
    warn_strays(draft, document)
    draft.warn("file", "a task log contains no tool calls; record spans to see them")
    asked: list[str] = []
    for where, row in rows(document):
        before, task = len(draft.messages), get.text(row, "task")
        if row.get("status") == "started":
            draft.user(task)
            asked.append(task)
        elif row.get("status") == "completed":
            output = row.get("output")
            if output is not None and task not in asked:
                draft.user(task)
            draft.assistant(json_text(output) if output is not None else task, name=get.text(row, "agent"), where=where)
        else:
            draft.unread(f"status {get.text(row, 'status') or 'missing'}", where)
        draft.stamp(before, get.as_time(row.get("timestamp")))
    yield draft
