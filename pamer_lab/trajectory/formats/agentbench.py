"""AgentBench runs: one sample per line, its history under `output`, the model's role named `agent`.

Actions are text in the model's messages; they are data and are never run.
"""

from collections.abc import Iterator

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import first_row, trace_rows

NAME = "agentbench-runs"


def detect(document: Document) -> bool:
    return "role" in get.first(get.obj(first_row(document), "output"), "history")


def read(document: Document) -> Iterator[Draft]:
    for where, row in trace_rows(document):
        draft = Draft(NAME, where=where)
        output = get.obj(row, "output")
        for place, message in get.placed(get.items(output, "history"), "history"):
            if not isinstance(message, dict):
                draft.warn(place, "is not a message; left out")
                continue
            text = content_of(draft, message.get("content"), place).text
            match message.get("role"):
                case "agent" | "assistant":
                    draft.assistant(text)
                case "system":
                    draft.system(text)
                case _:
                    draft.user(text)
        draft.task_id = get.text(row, "index")
        draft.question_id = f"agentbench/{draft.task_id}" if draft.task_id else ""
        draft.meta = get.facts(output, "status", "result") | get.facts(row, "error", "info")
        yield draft
