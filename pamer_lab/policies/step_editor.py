"""Shared by methods that ask a chat model which steps to edit: the index of steps it reads, and the JSON it answers with."""

from collections.abc import Callable
from typing import Any

from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.blocks.render import task_text
from pamer_lab.policies.interface import History


def editing_prompt(instruction: str, history: History, state: Callable[[int], str], characters: int) -> list[dict[str, str]]:
    """The task and one line per step: its state, its size, and the beginning of each of its messages."""
    lines = [f"Task:\n{task_text(history.messages[: history.prefix_end])}", "Steps:"]
    for block in range(history.t):
        text = " ".join(" ".join(message.content.split())[:characters] for message in history.block_messages(block))
        lines.append(f"step {block} ({state(block)}, {history.tokens([(block, block + 1)])} tokens): {text}")
    return [{"role": "system", "content": instruction}, {"role": "user", "content": break_template_tokens("\n".join(lines))}]


def operations_schema(*operations: str, texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """A list of steps with one operation each; `texts` are additional fields of an entry."""
    fields: dict[str, Any] = {"step": {"type": "integer"}, "operation": {"type": "string", "enum": list(operations)}}
    fields |= {name: {"type": "string"} for name in texts}
    entry = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"operations": {"type": "array", "items": entry}},
        "required": ["operations"],
        "additionalProperties": False,
    }
