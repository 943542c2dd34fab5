"""Message content in its many shapes -> text, images and thinking.

Knows the part shapes of OpenAI, Anthropic, Gemini and their relatives; knows no file format. What always holds:
every text of a part is found again in the result, and an image leaves a placeholder that says its size.
"""

from dataclasses import dataclass, field
from typing import Any

import orjson

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.draft import json_text
from pamer_lab.trajectory.values import Image, Tool, ToolCall, Usage


@dataclass
class Content:
    """What one message's content came to."""

    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[tuple[str, "Content", bool]] = field(default_factory=list)
    """(call id, content, is an error) for Anthropic-style `tool_result` parts."""
    unknown: list[str] = field(default_factory=list)
    """Types of parts that were kept as JSON text because no rule knows them."""

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def thought(self) -> str:
        return "\n".join(self.thinking)


def read_content(value: Any, *, where: str = "content") -> Content:
    """Content given as null, text, one part or a list of parts."""
    content = Content()
    if value is None:
        return content
    if isinstance(value, str):
        content.texts.append(value)
    elif isinstance(value, list):
        for part in value:
            _read_part(content, part, where)
    elif isinstance(value, dict):
        _read_part(content, value, where)
    else:
        raise FormatError(f"is {type(value).__name__} ({value!r}), not text", where=where)
    return content


def _read_part(content: Content, part: Any, where: str) -> None:
    if isinstance(part, str):
        content.texts.append(part)
        return
    if not isinstance(part, dict):
        raise FormatError(f"holds a part that is {type(part).__name__}, not text or an object", where=where)
    match part.get("type"):
        case "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text":
            content.texts.append(_text_of(part.get("text")))
        case "thinking" | "reasoning" | "think":
            thought = part.get("thinking") or part.get("reasoning") or part.get("text") or part.get("think") or ""
            content.thinking.append(_text_of(thought))
        case "redacted_thinking":
            content.thinking.append("[redacted thinking]")
        case "refusal":
            content.texts.append(_text_of(part.get("refusal")))
        case "image" | "image_url" | "input_image":
            add_image(content, part)
        case "tool_use" | "server_tool_use":
            content.calls.append(ToolCall(read_id(part.get("id")), str(part.get("name") or ""), json_text(part.get("input"))))
        case "tool_result":
            inner = read_content(part.get("content"), where=where)
            inner.texts.extend(inner.thinking)
            content.unknown.extend(inner.unknown)
            content.results.append((read_id(part.get("tool_use_id")), inner, bool(part.get("is_error"))))
        case "document" | "file" | "input_file" | "audio" | "input_audio" | "video" | "media":
            _add_attachment(content, part)
        case None if isinstance(part.get("text"), str):
            content.texts.append(part["text"])
        case str(other) if other.endswith("_tool_result") and part.get("tool_use_id"):
            content.results.append((str(part["tool_use_id"]), Content([json_text(part.get("content"))]), False))
        case other:
            content.unknown.append(str(other))
            content.texts.append(json_text(part))


def _add_attachment(content: Content, part: dict[str, Any]) -> None:
    """A file inside a message: its text where it is text, else a placeholder with its size."""
    inner = next((part[key] for key in ("source", "file", "input_audio", "audio", "video") if isinstance(part.get(key), dict)), part)
    if inner.get("type") == "text" and isinstance(inner.get("data"), str):
        content.texts.append(inner["data"])
        return
    data = inner.get("data") or inner.get("file_data") or ""
    size = f"{len(data) * 3 // 4:,} bytes" if isinstance(data, str) and data else "size not recorded"
    name = inner.get("filename") or part.get("title") or inner.get("media_type") or inner.get("format") or inner.get("file_id") or "unnamed"
    content.texts.append(f"[{part.get('type')}: {name}, {size}]")
    content.unknown.append(f"{part.get('type')} (a placeholder with its size)")


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict) and isinstance(value.get("value"), str):
        return str(value["value"])
    return json_text(value)


def add_image(content: Content, part: dict[str, Any]) -> None:
    """Keep an image's type and size, and a placeholder in the text."""
    image = measure_image(part)
    content.images.append(image)
    size = f"{image.bytes:,} bytes" if image.bytes else "size not recorded"
    content.texts.append(f"[image: {image.media_type}, {size}]")


def measure_image(part: dict[str, Any]) -> Image:
    """Media type and decoded size of an image part, whichever of the usual shapes it has."""
    given = part.get("source")
    source: dict[str, Any] = given if isinstance(given, dict) else {}
    address = part.get("image_url") or part.get("image") or part.get("url") or ""
    if isinstance(address, dict):
        address = address.get("url") or ""
    data = source.get("data") or part.get("data") or ""
    media = source.get("media_type") or part.get("mime_type") or part.get("mimeType") or part.get("media_type") or "image"
    if isinstance(address, str) and address.startswith("data:"):
        head, _, data = address.partition(",")
        media = head[5:].split(";")[0] or media
    return Image(str(media), len(data) * 3 // 4 if isinstance(data, str) else 0)


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


_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")


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
