"""A message -> the ChatML text a model reads, including tool calls and tool descriptions; and the recall query built from such texts.

Tokens are counted on this rendering, and hidden states are computed on it where a model's own template would drop calls.
Invariant: every text, call name and argument of a message is in its rendering, and a conversation's rendering is the concatenation of
its messages' renderings.
"""

from collections.abc import Iterable, Sequence

import orjson

from pamer_lab.trajectory.values import Message, Tool

VERSION = 1
"""Raised whenever the rendering changes, so that no stored vector or count of another rendering is reused."""

GENERATION_PROMPT = "<|im_start|>assistant\n"


def opening(message: Message) -> str:
    """What is rendered before a message's content."""
    if message.role != "tool":
        return f"<|im_start|>{message.role}\n"
    name = f" name={orjson.dumps(message.name).decode()}" if message.name else ""
    return f"<|im_start|>tool\n<tool_response{name}>\n"


def render_parts(message: Message) -> list[str]:
    """The rendering in parts that share the message's texts, so that a giant message is not copied."""
    parts = [opening(message), message.content]
    for number, call in enumerate(message.tool_calls):
        name = orjson.dumps(call.name).decode()
        gap = "\n" if number or message.content else ""
        parts += [f'{gap}<tool_call>\n{{"name": {name}, "arguments": ', call.arguments or "{}", "}\n</tool_call>"]
    if message.role == "tool":
        parts.append("\n</tool_response>")
    return [*parts, "<|im_end|>\n"]


def render_message(message: Message) -> str:
    """One message in ChatML; a call is a JSON object in `<tool_call>` tags, as Qwen and Hermes models write it."""
    return "".join(render_parts(message))


def render_tools(tools: Sequence[Tool]) -> str:
    """Tool descriptions as one system message in front of the conversation; empty without tools."""
    if not tools:
        return ""
    lines = [orjson.dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters}).decode() for tool in tools]
    return "<|im_start|>system\n# Tools\n<tools>\n" + "\n".join(lines) + "\n</tools><|im_end|>\n"


def render(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str:
    """A complete request, without the generation prompt."""
    return render_tools(tools) + "".join(render_message(message) for message in messages)


QUERY_CHARACTERS = 30_000
"""Characters of a recall query: the last ones of task and recent blocks."""


def task_text(prefix: Sequence[Message]) -> str:
    """Text of the prefix's user messages, or of the complete prefix if there are none."""
    asked = [message.content for message in prefix if message.role == "user"] or [message.content for message in prefix]
    return "\n".join(asked)


def query_text(task: str, recent: Iterable[Message], characters: int = QUERY_CHARACTERS) -> str:
    """Task and recent blocks as text, its last `characters`."""
    return "\n".join([task, *(render_message(message) for message in recent)])[-characters:]
