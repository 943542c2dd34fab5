"""What a message carries in addition to its content -> calls, tools, thinking.

Knows the field names of OpenAI, Anthropic, LangChain and their relatives; knows no file format. Invariant: a field of a shape
that no rule knows is either refused by its name or counts as missing, never half read.
"""

from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.vocabulary import call_of
from pamer_lab.trajectory.values import Tool, ToolCall


def read_call(value: Any, *, id: str = "id", name: str = "name", arguments: str = "arguments") -> ToolCall:
    """One call in a source's own field names."""
    return ToolCall(get.text(value, id), get.text(value, name), json_text(value.get(arguments)))


def read_calls(value: Any) -> list[ToolCall]:
    """A list of calls such as `tool_calls`, each nested or flat, under any names of the vocabulary; items may be JSON strings."""
    if not value:
        return []
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise FormatError(f"is {type(value).__name__}, not a list of calls", where="tool_calls")
    calls: list[ToolCall] = []
    for item in value:
        if isinstance(item, str):
            item = _parsed(item)
        if not isinstance(item, dict):
            raise FormatError(f"has a call that is {type(item).__name__}, not an object", where="tool_calls")
        calls.append(call_of(item))
    return calls


def _parsed(text: str) -> Any:
    value = get.parsed(text)
    if value is None and text.strip() != "null":
        raise FormatError("has a call that is text but not JSON", where="tool_calls")
    return value


def read_tools(value: Any) -> list[Tool]:
    """Tool descriptions in the shapes of OpenAI (nested or flat) and Anthropic; names alone are enough."""
    tools: list[Tool] = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str):
            tools.append(Tool(item))
            continue
        body = get.obj(item, "function") or item
        if isinstance(body, dict) and (name := body.get("name")):
            parameters = get.some(body, "parameters", "input_schema", "inputSchema", "json_schema")
            tools.append(Tool(str(name), str(body.get("description") or ""), parameters if isinstance(parameters, dict) else {}))
    return tools


def read_thinking(item: dict[str, Any]) -> str:
    """The reasoning a message carries outside its content, in the first of the usual fields that has any."""
    for key in ("reasoning_content", "reasoning", "thinking", "thinking_trace"):
        if isinstance(item.get(key), str) and item[key]:
            return str(item[key])
        if isinstance(item.get(key), dict) and (text := get.text(item[key], "thinking", "text", "content")):
            return text
    for key in ("thinking_blocks", "reasoning_details"):
        found = [get.some(block, "thinking", "text", "summary") for block in get.objects(item, key)]
        if texts := [text for text in found if isinstance(text, str) and text]:
            return "\n".join(texts)
    return ""
