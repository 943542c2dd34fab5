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
            content.calls.append(ToolCall(str(part.get("id") or ""), str(part.get("name") or ""), json_text(part.get("input"))))
        case "tool_result":
            inner = read_content(part.get("content"), where=where)
            content.results.append((str(part.get("tool_use_id") or ""), inner, bool(part.get("is_error"))))
        case None if isinstance(part.get("text"), str):
            content.texts.append(part["text"])
        case other:
            content.unknown.append(str(other))
            content.texts.append(json_text(part))


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


def read_openai_calls(value: Any) -> list[ToolCall]:
    """`tool_calls` in OpenAI's nested shape or the flat one; items may be JSON strings."""
    calls: list[ToolCall] = []
    for item in value or []:
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
        calls.append(ToolCall(str(item.get("id") or ""), str(name or ""), json_text(arguments)))
    return calls


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


def read_usage(value: Any) -> Usage | None:
    """Recorded usage in the names of OpenAI, Anthropic and LangChain; None where there is none."""
    if not isinstance(value, dict):
        return None

    def number(*names: str) -> int:
        found = next((value[name] for name in names if isinstance(value.get(name), int | float)), 0)
        return int(found) if found == found and abs(found) < 1e15 else 0

    details = value.get("prompt_tokens_details") or value.get("input_tokens_details") or {}
    inner = details.get("cached_tokens") if isinstance(details, dict) else None
    written = number("cache_creation_input_tokens")
    read = number("cache_read_input_tokens")
    usage = Usage(
        input_tokens=number("prompt_tokens", "input_tokens") + written + read,
        output_tokens=number("completion_tokens", "output_tokens"),
        cached_tokens=read or (int(inner) if isinstance(inner, int) else 0) or number("cached_tokens"),
    )
    return usage if usage != Usage() else None
