"""ShareGPT conversations: turns `{from, value}`, with calls and observations as turns of their own.

A `function_call` turn is an assistant message with its call (JSON text in `value`); an `observation` answers it. There
are no ids.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_calls, read_tools
from pamer_lab.trajectory.shared.parts import measure_image
from pamer_lab.trajectory.shared.rows import first_row, trace_rows
from pamer_lab.trajectory.values import ToolCall

NAME = "sharegpt-toolcall"
ASSISTANT = ("gpt", "assistant", "model", "chatgpt", "bing", "bard")
RESULT = ("observation", "tool", "function_response", "tool_response", "function")


def detect(document: Document) -> bool:
    return {"from", "value"} <= get.first(first_row(document), "conversations").keys()


def read(document: Document) -> Iterator[Draft]:
    for where, value in trace_rows(document):
        if not isinstance(value.get("conversations"), list):
            raise FormatError("has no conversations like the ones before it", where=where)
        yield _read_one(Draft(NAME, where=where, orphans="as_user"), value)


def _read_one(draft: Draft, value: dict[str, Any]) -> Draft:
    draft.tools = read_tools(get.parsed(value.get("tools")))
    draft.task_id = get.text(value, "id")
    if system := get.text(value, "system"):
        draft.system(system)
    for where, turn in draft.each(value["conversations"], "conversations", "a turn"):
        said, speaker = json_text(turn.get("value") or ""), turn.get("from")
        if speaker in ASSISTANT:
            draft.assistant(said, where=where)
        elif speaker in ("function_call", "tool_call"):
            _add_call(draft, said, where)
        elif speaker in RESULT:
            draft.tool("", said, where=where)
        elif speaker == "system":
            draft.system(said)
        else:
            shown = get.text(turn, "screenshotBase64")  # UI-TARS stores the screenshot next to the text
            images = [measure_image({"data": shown, "media_type": "image/png"})] if shown else []
            draft.user(said, images=images, name=get.as_text(speaker) if speaker not in ("human", "user") else "")
    return draft


def _add_call(draft: Draft, said: str, where: str) -> None:
    calls = get.as_list(get.parsed(said))
    if all(isinstance(item, dict) and "name" in item for item in calls):
        draft.assistant("", read_calls(calls), where=where)
    else:
        draft.warn(where, "the call is not JSON; its text was kept as the arguments")
        draft.assistant("", [ToolCall("", "function_call", said)], where=where)
