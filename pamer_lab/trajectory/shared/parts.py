"""Message content in its many shapes -> text, images and thinking.

Knows the part shapes of OpenAI, Anthropic, Gemini and their relatives; knows no file format. `fields` reads everything else in a message.
Invariant: every text of a part is kept in the result, and an image leaves a placeholder that gives its size.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.vocabulary import CALL_IDS, OUTPUTS, call_of, failure, output_of, part_kind, read_id, result_of, text_of
from pamer_lab.trajectory.values import Image, ToolCall

RESULT_KEYS = {"type", "is_error", "cache_control", "name", "toolName", "status", *CALL_IDS}
"""Fields of a result other than its output, which a tool that returned nothing may leave out."""

THOUGHTS = ("thinking", "reasoning", "text", "think", "content", "thought")
"""Fields of a part that hold reasoning."""


@dataclass
class Content:
    """The parsed content of one message."""

    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[tuple[str, "Content", bool]] = field(default_factory=list)
    """(call id, content, is an error) for Anthropic-style `tool_result` parts."""
    unknown: list[str] = field(default_factory=list)
    """Types of parts that were kept as JSON text because no rule knows them, those of the results included."""

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def thought(self) -> str:
        return "\n".join(self.thinking)

    @property
    def words(self) -> str:
        """Everything in it as plain text, for side agents."""
        pieces = [*self.thinking, *self.texts, *(f"{call.name} {call.arguments}" for call in self.calls)]
        return "\n".join([*pieces, *(result.text for _, result, _ in self.results)])


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


def content_of(draft: Draft, value: Any, where: str, read: Callable[[Any], Content] = read_content) -> Content:
    """The content of a message at a place: a fault names the place, and so do the warnings about parts that no rule knows."""
    try:
        content = read(value)
    except FormatError as error:
        raise draft.fault(where, error.reason) from error
    warn_unknown(draft, content, where)
    return content


def output_content(draft: Draft, output: Any, where: str) -> Content:
    """What a tool gave back, as `read_output` reads it, with the same faults and warnings as `content_of`."""
    return content_of(draft, output, where, read_output)


def warn_unknown(draft: Draft, content: Content, where: str) -> None:
    """Warn about the parts that were not kept in their own form."""
    for kind in content.unknown:
        draft.warn(where, f"part of type {kind!r} was kept as JSON text" if "(" not in kind else f"part of type {kind}")


def _read_part(content: Content, part: Any, where: str) -> None:
    if isinstance(part, str):
        content.texts.append(part)
        return
    if not isinstance(part, dict):
        raise FormatError(f"has a part that is {type(part).__name__}, not text or an object", where=where)
    match part.get("type"):
        case "text" | "input_text" | "output_text" if type(part.get("text")) is str:
            content.texts.append(part["text"])
        case "tool_use" if type(own := part.get("id")) is str and type(name := part.get("name")) is str and "input" in part:
            content.calls.append(ToolCall(own, name, json_text(part["input"])))
        case "redacted_thinking":
            content.thinking.append("[redacted thinking]")
        case "refusal":
            content.texts.append(text_of(part, "refusal"))
        case str(other) if other.endswith("_tool_result") and part.get("tool_use_id"):
            content.results.append((str(part["tool_use_id"]), Content([json_text(part.get("content"))]), False))
        case _:
            _read_by_kind(content, part, where)


def _read_by_kind(content: Content, part: dict[str, Any], where: str) -> None:
    """A part in any other spelling of the vocabulary; one that no rule knows is kept as JSON text."""
    kind, body = part_kind(part)
    match kind:
        case "text":
            content.texts.append(text_of(body, "text", "content", "value"))
        case "thinking":
            content.thinking.append(text_of(body, *THOUGHTS) or _summaries(body))
        case "image":
            add_image(content, body)
        case "call" if (ran := get.obj(body, "tool_call") or body).get("output") is not None or ran.get("result") is not None:
            _add_both(content, ran, where)  # LibreChat and Chatbox keep the output with the call
        case "call":
            content.calls.append(call_of(body))
        case "result":
            _add_result(content, body, where)
        case "both":
            _add_both(content, body, where)
        case "attachment":
            _add_attachment(content, body)
        case "mark":
            pass
        case _:
            content.unknown.append(str(part.get("type")))
            content.texts.append(json_text(part))


def _summaries(part: dict[str, Any]) -> str:
    """The summary of a hidden thought, as Claude.ai and the Responses API give it."""
    given = get.objects(part, "summaries", "summary")
    return "\n".join(text for item in given if (text := get.text(item, "summary", "text")))


def _add_result(content: Content, part: dict[str, Any], where: str) -> None:
    """What a tool returned; if no known field holds it, the other fields are kept as JSON text."""
    call_id, output, failed = result_of(part)
    rest = {key: value for key, value in part.items() if key not in RESULT_KEYS}
    if rest and not rest.keys() & {*OUTPUTS}:
        inner = Content([json_text(rest)], unknown=[str(part.get("type"))])
    else:
        inner = read_output(output, where=where)
    content.unknown.extend(inner.unknown)
    content.results.append((call_id, inner, failed))


def _add_both(content: Content, part: dict[str, Any], where: str) -> None:
    """A call with its result in one part (Vercel's UI messages); the result is present once the tool has run."""
    body = get.obj(part, "toolInvocation") or part
    call = call_of({"name": body.get("toolName"), **body, "id": read_id(body, "toolCallId", "id")})
    content.calls.append(call)
    found = next((body[key] for key in ("output", "result", "errorText") if body.get(key) is not None), None)
    if found is not None:
        output, failed = output_of(found)
        failed = failed or failure(body) or bool(body.get("errorText"))
        inner = read_output(output, where=where)
        content.unknown.extend(inner.unknown)
        content.results.append((call.id, inner, failed))


def read_output(output: Any, *, where: str = "content") -> Content:
    """A tool's output, already without its wrappers: text, parts, or any other value as JSON text."""
    if isinstance(output, bool | int | float) or _is_own_answer(output):
        return Content([json_text(output)])
    inner = read_content(output, where=where)
    inner.texts.extend(inner.thinking)
    return inner


def _is_own_answer(output: Any) -> bool:
    """Whether an object or a list is data of the tool rather than parts of a message."""
    if isinstance(output, dict):
        return part_kind(output)[0] == ""
    if not isinstance(output, list) or not output:
        return False
    objects = [item for item in output if isinstance(item, dict)]
    own = all("type" not in item and part_kind(item)[0] == "" for item in objects)
    return own and (bool(objects) or not all(isinstance(item, str) for item in output))


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


def add_image(content: Content, part: dict[str, Any]) -> None:
    """Keep an image's type and size, and a placeholder in the text."""
    image = measure_image(part)
    content.images.append(image)
    size = f"{image.bytes:,} bytes" if image.bytes else "size not recorded"
    content.texts.append(f"[image: {image.media_type}, {size}]")


def _format(part: dict[str, Any]) -> str:
    """The media type of an image in Bedrock's shape, which names only a file ending; else empty."""
    return f"image/{part['format']}" if isinstance(part.get("format"), str) else ""


def measure_image(part: dict[str, Any]) -> Image:
    """Media type and decoded size of an image part, whichever of the usual shapes it has."""
    source = get.obj(part, "source")
    address = get.some(part, "image_url", "image", "url")
    if isinstance(address, dict):
        address = address.get("url")
    data = get.some(source, "data", "bytes") or get.some(part, "data") or ""
    media = get.some(source, "media_type") or get.some(part, "mime_type", "mimeType", "media_type", "mediaType") or _format(part) or "image"
    if isinstance(address, str) and address.startswith("data:"):
        head, _, data = address.partition(",")
        media = head[5:].split(";")[0] or media
    return Image(str(media), len(data) * 3 // 4 if isinstance(data, str) else 0)
