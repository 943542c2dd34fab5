"""Computer-use recordings: OpenCUA's AgentNet tasks and OSWorld's `traj.jsonl`.

Each step's screenshot becomes a placeholder in a user message and its action a call; what the annotator or the agent thought is kept as
thinking. The outcome of an action is the next screenshot, so calls have no results.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episode, head, rows
from pamer_lab.trajectory.values import Image, ToolCall

NAME = "computer-use-steps"
SCREENSHOTS = ("image", "screenshot_file", "screenshot", "screenshot_path", "img", "image_path")
CODES = ("code", "action", "pyautogui_code", "command")
THOUGHTS = ("observation", "thought", "reflection")
SAID = ("low_level_instruction", "response", "prediction", "raw_response")
TASKS = ("instruction", "user_task_description", "natural_language_task", "actual_task", "high_level_task_description", "task", "goal")


def detect(document: Document) -> bool:
    if _is_step_line(document):
        return True
    value = first_episode(document)
    step = get.first(value, "traj", "steps", "trajectory")
    return any(key in step for key in SCREENSHOTS) and _action(step) is not None


def _is_step_line(document: Document) -> bool:
    found = head(document, 3)
    return bool(found) and all("step_num" in row and "action" in row and any(key in row for key in SCREENSHOTS) for row in found)


def read(document: Document) -> Iterator[Draft]:
    if _is_step_line(document):
        yield attempt(NAME, "", _read_one, {"steps": [row for _, row in rows(document)]}, "")
        return
    for where, value in episodes(document):
        yield attempt(NAME, where, _read_one, value, where)


def _read_one(value: Any, where: str) -> Draft:
    draft = Draft(NAME, where=where)
    if task := get.text(value, *TASKS):
        draft.user(task)
    steps = get.items(value, "traj", "steps", "trajectory")
    unused: set[str] = set()
    for place, step in draft.each(steps, "steps", "a step"):
        body = get.obj(step, "value") or step
        if file := get.some(step, *SCREENSHOTS):
            image = Image("image/png", len(file) * 3 // 4 if isinstance(file, str) and len(file) > 1000 else 0)
            name = file if isinstance(file, str) and len(file) < 200 else "screenshot"
            size = f"{image.bytes:,} bytes" if image.bytes else "size not recorded"
            draft.user(f"[image: {name}, {size}]", images=[image], name="screenshot")
        monologue = get.obj(step, "inner_monologue") or body
        thinking = "\n\n".join(filter(None, (get.text(monologue, key) for key in THOUGHTS)))
        said = get.text(monologue, *SAID) or get.text(body, *SAID) or (get.text(body, "action") if get.text(body, "code") else "")
        action = _action(step)
        calls = [] if action in (None, "") else [ToolCall("", "computer", json_text({"action": action}))]
        draft.assistant(said, calls, thinking=thinking, where=place)
        unused |= {key for key in ("ground_truth_actions", "alternative_options") if step.get(key)}
        if step.get("done") is True or get.amount(step, "reward"):
            draft.reward = get.amount(step, "reward")
    for key in sorted(unused):
        draft.unread(key, "steps")
    draft.task_id = get.text(value, "task_id", "id")
    if isinstance(done := value.get("task_completed"), bool):
        draft.reward = float(done)
    draft.meta = get.facts(
        value, "high_level_task_description", "alignment_score", "efficiency_score", "task_difficulty", "domain", "meta_info"
    )
    return draft


def _action(step: Any) -> Any:
    """What was done: a line of code, or the object that describes it."""
    body = get.obj(step, "value") or step
    return next((body[key] for key in CODES if isinstance(body, dict) and isinstance(body.get(key), str | dict | list)), None)
