"""tau-bench results: a list of episodes (or one episode) whose OpenAI chat is under `traj`.

Taken: task id, reward, trial, the task's instruction and user id (as facts, they were never sent to the agent), and the
messages. Arguments may be JSON text or objects; ids may be missing or small numbers.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.messages import add_messages, is_message
from pamer_lab.trajectory.shared.rows import first_episodes, read_each

NAME = "tau-bench"


def detect(document: Document) -> bool:
    return any(_is_episode(value) for value in first_episodes(document))


def _is_episode(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("traj"), list):
        return False
    if not value["traj"]:  # a failed run
        return "task_id" in value and "reward" in value
    return is_message(value["traj"][0]) and ("task_id" in value or "reward" in value)


def read(document: Document) -> Iterator[Draft]:
    return read_each(document, NAME, _read_one)


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("traj"), list):
        raise FormatError("is not an episode with a `traj` list", where=where)
    info = get.obj(value, "info")
    if not value["traj"]:
        raise FormatError(f"contains no messages; the run failed with {get.text(info, 'error')!r}", where=where)
    draft = Draft(NAME, where=where)
    draft.task_id = draft.question_id = get.text(value, "task_id")
    draft.reward = get.amount(value, "reward")
    task = get.obj(info, "task")
    draft.meta = get.facts(value, "trial") | get.facts(task, "user_id", "instruction") | get.facts(info, "user_cost", "error")
    draft.meta["expected_outputs"] = task.get("outputs")
    add_messages(draft, value["traj"], place="traj")
    return draft
