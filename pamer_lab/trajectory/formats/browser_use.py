"""browser-use histories: what the browser showed, what the model chose, what came of it.

There are no messages in the file: the state of each step is written as a user message (address, title, tabs, elements,
and the screenshot as a placeholder), the model's output as the assistant's, its actions as calls and their results as
answers. The selector map repeats the elements for the program and is not read; the task's text is not in the file.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.formats.rows import text_of
from pamer_lab.trajectory.parts import Content, add_image
from pamer_lab.trajectory.values import ToolCall

NAME = "browser-use-history"
UNREAD = ("screenshot", "selector_map", "screenshot_path")


def detect(document: Document) -> bool:
    root = document.root
    history = root.get("history") if document.kind == "json" and isinstance(root, dict) else None
    return (
        isinstance(history, list)
        and bool(history)
        and isinstance(history[0], dict)
        and {"model_output", "result", "state"} <= history[0].keys()
    )


def read(document: Document) -> Iterator[Draft]:
    draft = Draft(NAME)
    draft.warn("history", "holds states and actions, not messages; the messages were written from them, and the task is not known")
    for number, step in enumerate(document.root["history"]):
        if isinstance(step, dict):
            _add_step(draft, step, f"history[{number}]")
    yield draft


def _add_step(draft: Draft, step: dict[str, Any], where: str) -> None:
    state = step.get("state")
    if isinstance(state, dict):
        shown = Content([json_text({key: value for key, value in state.items() if key not in UNREAD and value})])
        if isinstance(state.get("screenshot"), str) and state["screenshot"]:
            add_image(shown, {"mime_type": "image/png", "data": state["screenshot"]})
        draft.user(shown.text, images=shown.images)
    output = step.get("model_output")
    calls: list[ToolCall] = []
    if isinstance(output, dict):
        given = output.get("action")
        for action in given if isinstance(given, list) else [given]:
            if isinstance(action, dict):
                calls += [ToolCall("", name, json_text(arguments)) for name, arguments in action.items() if arguments is not None]
        thought = {key: value for key, value in output.items() if key != "action"}
        draft.assistant(json_text(thought), calls, where=where)
    results = step.get("result")
    for result in results if isinstance(results, list) else [results]:
        if isinstance(result, dict) and draft.open_calls():
            failed = bool(result.get("error"))
            text = text_of(result.get("error")) or text_of(result.get("extracted_content")) or json_text(result)
            draft.tool("", text, error=failed, where=where)
