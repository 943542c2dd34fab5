"""Message content in its many shapes -> text, images and thinking.

Knows the part shapes of OpenAI, Anthropic, Gemini and their relatives; knows no file format. `fields` reads what is beside the content.
Invariant: every text of a part is found again in the result, and an image leaves a placeholder that gives its size.
"""

from dataclasses import dataclass, field
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.draft import Draft, json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_id
from pamer_lab.trajectory.values import Image, ToolCall

RESULT_KEYS = {"type", "tool_use_id", "is_error", "cache_control"}
"""Fields of a `tool_result` part beside its `content`, which Anthropic lets a tool that returned nothing leave out."""


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


def content_of(draft: Draft, value: Any, where: str) -> Content:
    """The content of a message at a place: a fault names the place, and so do the warnings about parts that no rule knows."""
    try:
        content = read_content(value)
    except FormatError as error:
        raise draft.fault(where, error.reason) from error
    warn_unknown(draft, content, where)
    return content


def warn_unknown(draft: Draft, content: Content, where: str) -> None:
    """Name the parts that are not in the content as they were."""
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text" if "(" not in kind else f"part of type {kind}")


def _read_part(content: Content, part: Any, where: str) -> None:
    if isinstance(part, str):
        content.texts.append(part)
        return
    if not isinstance(part, dict):
        raise FormatError(f"holds a part that is {type(part).__name__}, not text or an object", where=where)
    match part.get("type"):
        case "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text":
            content.texts.append(_plain_text(part.get("text")))
        case "thinking" | "reasoning" | "think":
            content.thinking.append(_plain_text(get.some(part, "thinking", "reasoning", "text", "think")))
        case "redacted_thinking":
            content.thinking.append("[redacted thinking]")
        case "refusal":
            content.texts.append(_plain_text(part.get("refusal")))
        case "image" | "image_url" | "input_image":
            add_image(content, part)
        case "tool_use" | "server_tool_use":
            content.calls.append(ToolCall(read_id(part.get("id")), str(part.get("name") or ""), json_text(part.get("input"))))
        case "tool_result":
            inner = _read_result(part, where)
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


def _read_result(part: dict[str, Any], where: str) -> Content:
    """What a tool returned; where it is not under `content`, the other fields are kept as JSON text."""
    rest = {key: value for key, value in part.items() if key not in RESULT_KEYS}
    if rest and "content" not in part:
        return Content([json_text(rest)], unknown=["tool_result"])
    inner = read_content(part.get("content"), where=where)
    inner.texts.extend(inner.thinking)
    return inner


def _add_attachment(content: Content, part: dict[str, Any]) -> None:
    """A file inside a message: its text where it is text, else a placeholder with its size."""
    inner = get.obj(part, "source", "file", "input_audio", "audio", "video") or part
    if inner.get("type") == "text" and isinstance(inner.get("data"), str):
        content.texts.append(inner["data"])
        return
    data = get.some(inner, "data", "file_data")
    size = f"{len(data) * 3 // 4:,} bytes" if isinstance(data, str) and data else "size not recorded"
    name = inner.get("filename") or part.get("title") or inner.get("media_type") or inner.get("format") or inner.get("file_id") or "unnamed"
    content.texts.append(f"[{part.get('type')}: {name}, {size}]")
    content.unknown.append(f"{part.get('type')} (a placeholder with its size)")


def _plain_text(value: Any) -> str:
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
    source = get.obj(part, "source")
    address = get.some(part, "image_url", "image", "url")
    if isinstance(address, dict):
        address = address.get("url")
    data = get.some(source, "data") or get.some(part, "data") or ""
    media = get.some(source, "media_type") or get.some(part, "mime_type", "mimeType", "media_type") or "image"
    if isinstance(address, str) and address.startswith("data:"):
        head, _, data = address.partition(",")
        media = head[5:].split(";")[0] or media
    return Image(str(media), len(data) * 3 // 4 if isinstance(data, str) else 0)
