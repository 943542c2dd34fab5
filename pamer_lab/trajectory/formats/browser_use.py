"""browser-use histories: what the browser showed, what the model chose, and the outcome.

The file has no messages: each step's state (address, title, tabs, elements, the screenshot as a placeholder) becomes a user
message, the model's output an assistant message whose calls are the actions, and the outcomes their results. The selector map,
which repeats the elements, is not read; the file does not contain the task.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import Content, add_image
from pamer_lab.trajectory.shared.rows import one_value
from pamer_lab.trajectory.values import ToolCall

NAME = "browser-use-history"
UNREAD = ("screenshot", "selector_map", "screenshot_path")


def detect(document: Document) -> bool:
    return {"model_output", "result", "state"} <= get.first(one_value(document), "history").keys()


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME)
    draft.warn("history", "contains states and actions, not messages; the messages were composed from them, and the task is unknown")
    for where, step in get.placed(document.root["history"], "history"):
        if isinstance(step, dict):
            _add_step(draft, step, where)
    yield draft


def _add_step(draft: Draft, step: dict[str, Any], where: str) -> None:
    state, output = step.get("state"), step.get("model_output")
    if isinstance(state, dict):
        shown = Content([json_text({key: value for key, value in state.items() if key not in UNREAD and value})])
        if isinstance(state.get("screenshot"), str) and state["screenshot"]:
            add_image(shown, {"mime_type": "image/png", "data": state["screenshot"]})
        draft.user(shown.text, images=shown.images)
    if isinstance(output, dict):
        actions = [action for action in get.as_list(output.get("action")) if isinstance(action, dict)]
        calls = [ToolCall("", name, json_text(given)) for action in actions for name, given in action.items() if given is not None]
        thought = {key: value for key, value in output.items() if key != "action"}
        draft.assistant(json_text(thought), calls, where=where)
    for result in get.as_list(step.get("result")):
        if isinstance(result, dict) and draft.open_calls():
            text = get.text(result, "error", "extracted_content") or json_text(result)
            draft.tool("", text, error=bool(result.get("error")), where=where)
