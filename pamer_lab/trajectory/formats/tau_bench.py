"""tau-bench results: a list of episodes (or one episode) whose OpenAI chat stands under `traj`.

Taken: task id, reward, trial, the task's instruction and user id (as facts, they were never sent to the agent), and the
messages. Arguments may be JSON text or objects; ids may be missing or small numbers.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.episodes import first_episodes, read_each
from pamer_lab.trajectory.fields import read_number
from pamer_lab.trajectory.formats.openai_chat import add_messages, is_message, text_of

NAME = "tau-bench"


def detect(document: Document) -> bool:
    return any(_is_episode(value) for value in first_episodes(document))


def _is_episode(value: Any) -> bool:
    traj = value.get("traj") if isinstance(value, dict) else None
    if not isinstance(traj, list) or not ("task_id" in value or "reward" in value):
        return False
    return is_message(traj[0]) if traj else "task_id" in value and "reward" in value


def read(document: Document) -> Iterator[Draft]:
    return read_each(document, NAME, _read_one)


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("traj"), list):
        raise FormatError("is not an episode with a `traj` list", where=where)
    if not value["traj"]:
        raise FormatError(f"holds no messages; the run failed with {_error(value)!r}", where=where)
    draft = Draft(NAME, where=where)
    draft.task_id = draft.question_id = text_of(value, "task_id")
    draft.reward = read_number(value.get("reward"))
    _read_info(draft, value)
    add_messages(draft, value["traj"], place="traj")
    return draft


def _read_info(draft: Draft, value: dict[str, Any]) -> None:
    info = value.get("info")
    info = info if isinstance(info, dict) else {}
    task = info.get("task")
    task = task if isinstance(task, dict) else {}
    draft.meta = {
        "trial": value.get("trial"),
        "user_id": task.get("user_id"),
        "instruction": task.get("instruction"),
        "expected_outputs": task.get("outputs"),
        "user_cost": info.get("user_cost"),
        "error": info.get("error"),
    }


def _error(value: dict[str, Any]) -> str:
    info = value.get("info")
    return text_of(info, "error") if isinstance(info, dict) else ""
