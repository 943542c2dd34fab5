"""ShareGPT conversations: turns `{from, value}`, with calls and observations as turns of their own.

A `function_call` turn is an assistant message with its call (JSON text in `value`); an `observation` answers it. There
are no ids.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.fields import read_openai_calls, read_tools
from pamer_lab.trajectory.formats.rows import head, rows, text_of
from pamer_lab.trajectory.values import ToolCall

NAME = "sharegpt-toolcall"
ASSISTANT = ("gpt", "assistant", "model", "chatgpt", "bing", "bard")
RESULT = ("observation", "tool", "function_response", "tool_response", "function")


def detect(document: Document) -> bool:
    first = head(document, 1)
    turns = first[0].get("conversations") if document.kind in ("json", "jsonl") and first else None
    return isinstance(turns, list) and bool(turns) and isinstance(turns[0], dict) and "from" in turns[0] and "value" in turns[0]


def read(document: Document) -> Iterator[Draft]:
    found = rows(document)
    for where, value in found:
        turns = value.get("conversations")
        if not isinstance(turns, list):
            raise FormatError("has no conversations like the ones before it", where=where)
        yield _read_one(Draft(NAME, where=where if len(found) > 1 else "", orphans="as_user"), value, turns)


def _read_one(draft: Draft, value: dict[str, Any], turns: list[Any]) -> Draft:
    draft.tools = read_tools(_parsed(value.get("tools")))
    draft.task_id = text_of(value.get("id"))
    if text_of(value.get("system")):
        draft.system(value["system"])
    for number, turn in enumerate(turns):
        where = f"conversations[{number}]"
        if not isinstance(turn, dict):
            raise FormatError(f"is {type(turn).__name__}, not a turn", where=f"{draft.where} {where}".strip())
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
            draft.user(said, name=text_of(speaker) if speaker not in ("human", "user") else "")
    return draft


def _add_call(draft: Draft, said: str, where: str) -> None:
    given = _parsed(said)
    listed = given if isinstance(given, list) else [given]
    if all(isinstance(item, dict) and "name" in item for item in listed):
        draft.assistant("", read_openai_calls(listed), where=where)
    else:
        draft.warn(where, "the call is not JSON; its text was kept as the arguments")
        draft.assistant("", [ToolCall("", "function_call", said)], where=where)


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
