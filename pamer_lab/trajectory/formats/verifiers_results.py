"""Verifiers `results.jsonl`: `prompt` and `completion` as two parts of one OpenAI chat.

`tool_calls` may be JSON strings; results may name no call and then answer in order. Taken: example id, task, reward,
expected answer, tools from `info.oai_tools`, and the numbers the environment scored.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.messages import add_messages, is_message
from pamer_lab.trajectory.shared.rows import first_episodes, read_each
from pamer_lab.trajectory.shared.usage import read_usage

NAME = "verifiers-results"
TAKEN = {"prompt", "completion", "info", "example_id", "id", "reward", "messages", "trajectory", "tool_defs"}


def detect(document: Document) -> bool:
    return any(_is_result(value) for value in first_episodes(document))


def _is_result(value: Any) -> bool:
    if not isinstance(value, dict) or "prompt" not in value or "completion" not in value:
        return False
    said = [*_part(value["prompt"], "user")[:1], *_part(value["completion"], "assistant")[:1]]
    return len(said) == 2 and all(is_message(item) for item in said) and ("reward" in value or "example_id" in value)


def _part(value: Any, role: str) -> list[Any]:
    """A prompt or completion: messages, or plain text as one message."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return value if isinstance(value, list) else []


def read(document: Document) -> Iterator[Draft]:
    return read_each(document, NAME, _read_one)


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or "completion" not in value:
        raise FormatError("is not a result with `prompt` and `completion`", where=where)
    draft = Draft(NAME, where=where)
    info = get.parsed(value.get("info"))
    tools = value.get("tool_defs") or get.some(info, "oai_tools", "tools") or value.get("tools")
    draft.tools = read_tools(get.parsed(tools))
    draft.question_id, draft.task_id = get.text(value, "example_id", "id"), get.text(value, "task")
    draft.model, draft.reward = get.text(value, "model"), get.amount(value, "reward")
    draft.usage = read_usage(get.some(value, "token_usage", "usage"))
    draft.meta = {key: item for key, item in value.items() if key not in TAKEN and isinstance(item, str | int | float)}
    add_messages(draft, _part(value.get("prompt"), "user"), place="prompt")
    add_messages(draft, _part(value["completion"], "assistant"), place="completion")
    return draft
