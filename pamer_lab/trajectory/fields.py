"""What stands beside a message's content in its many shapes -> calls, tools, usage, thinking.

Knows the field names of OpenAI, Anthropic, LangChain and their relatives; knows no file format. What always holds: a field of a shape
that no rule knows is either refused by its name or counts as missing, never half read.
"""

from typing import Any

import orjson

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.draft import json_text
from pamer_lab.trajectory.values import Tool, ToolCall, Usage


def read_id(value: Any) -> str:
    """An id as text; some sources number their calls from 0."""
    return "" if value is None else str(value)


def read_openai_calls(value: Any) -> list[ToolCall]:
    """`tool_calls` in OpenAI's nested shape or the flat one; items may be JSON strings."""
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
            raise FormatError(f"holds a call that is {type(item).__name__}, not an object", where="tool_calls")
        function = item.get("function")
        if isinstance(function, dict):
            name, arguments = function.get("name"), function.get("arguments")
        else:
            name = function if isinstance(function, str) else item.get("name")
            arguments = next((item[key] for key in ("arguments", "args", "input", "parameters") if key in item), None)
        calls.append(ToolCall(read_id(item.get("id", item.get("tool_call_id"))), str(name or ""), json_text(arguments)))
    return calls


def parse_json(text: str) -> Any:
    """A value that a source keeps as JSON text; None where it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise FormatError("holds a call that is text but not JSON", where="tool_calls") from error


def read_tools(value: Any) -> list[Tool]:
    """Tool descriptions in the shapes of OpenAI (nested or flat) and Anthropic; names alone are enough."""
    tools: list[Tool] = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str):
            tools.append(Tool(item))
            continue
        if not isinstance(item, dict):
            continue
        body = item["function"] if isinstance(item.get("function"), dict) else item
        parameters: Any = next((body[key] for key in ("parameters", "input_schema", "inputSchema", "json_schema") if body.get(key)), {})
        if name := body.get("name"):
            tools.append(Tool(str(name), str(body.get("description") or ""), parameters if isinstance(parameters, dict) else {}))
    return tools


_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")


def read_usage(value: Any, cost: Any = None) -> Usage | None:
    """Recorded usage in the names of OpenAI, Anthropic, LangChain and OpenHands; None where there is none.

    Anthropic's `input_tokens` leaves cached tokens out, so they are added; everyone else's number includes them.
    """
    price = float(cost) if isinstance(cost, int | float) and cost == cost and cost > 0 else None
    if not isinstance(value, dict):
        return Usage(cost_usd=price) if price is not None else None

    def number(*names: str) -> int:
        found = next((value[name] for name in names if isinstance(value.get(name), int | float)), 0)
        return int(found) if found == found and abs(found) < 1e15 else 0

    nested: dict[str, Any] = next((value[key] for key in _DETAILS if isinstance(value.get(key), dict)), {})
    inside = next((nested[key] for key in ("cached_tokens", "cache_read") if isinstance(nested.get(key), int)), 0)
    written, read = number("cache_creation_input_tokens"), number("cache_read_input_tokens")
    beside = written + read if "prompt_tokens" not in value else 0
    usage = Usage(
        input_tokens=number("prompt_tokens", "input_tokens", "prompt_token_count", "tokens_sent") + beside,
        output_tokens=number("completion_tokens", "output_tokens", "candidates_token_count", "tokens_received"),
        cached_tokens=read or inside or number("cached_tokens", "cache_read_tokens", "prompt_cache_hit_tokens"),
        cost_usd=price,
    )
    return usage if usage != Usage() else None


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """The sum of two recorded usages, either of which may be missing."""
    if first is None or second is None:
        return first or second
    prices = [price for price in (first.cost_usd, second.cost_usd) if price is not None]
    return Usage(
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        first.cached_tokens + second.cached_tokens,
        sum(prices) if prices else None,
    )


def read_number(value: Any) -> float | None:
    """A reward given as a number or a truth value; None where it is neither."""
    return float(value) if isinstance(value, int | float) else None


def read_thinking(item: dict[str, Any]) -> str:
    """The reasoning a message carries beside its content, in the first of the usual fields that has any."""
    for key in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(item.get(key), str) and item[key]:
            return str(item[key])
    for key in ("thinking_blocks", "reasoning_details"):
        if isinstance(blocks := item.get(key), list):
            found = [block.get("thinking") or block.get("text") or block.get("summary") for block in blocks if isinstance(block, dict)]
            if texts := [text for text in found if isinstance(text, str) and text]:
                return "\n".join(texts)
    return ""
