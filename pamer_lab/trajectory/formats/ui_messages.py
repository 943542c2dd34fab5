"""Vercel's AI SDK as applications store it: UI messages with parts, and the stream of chunks that builds them.

One assistant message may hold several steps (calls with their results, then more text); each becomes a separate turn. Model messages
(`tool-call` and `tool-result` parts) are read by the chat readers.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.messages import read_facts
from pamer_lab.trajectory.shared.ordered import ordered_steps
from pamer_lab.trajectory.shared.parts import content_of
from pamer_lab.trajectory.shared.rows import attempt, episodes, first_episode, head
from pamer_lab.trajectory.shared.steps import Said, Step, add_steps
from pamer_lab.trajectory.shared.usage import read_usage
from pamer_lab.trajectory.shared.vocabulary import role_of

NAME = "vercel-ui-messages"
CHUNKS = {"start", "start-step", "text-start", "text-delta", "tool-input-start", "tool-input-available", "tool-output-available", "finish"}
SILENT = {"source-url", "source-document", "finish", "abort", "message-metadata", "tool-approval-request", "tool-approval-response"}


def detect(document: Document) -> bool:
    if _is_stream(document):
        return True
    first = first_episode(document)
    messages = get.objects(first, "messages") or ([first] if isinstance(first, dict) else [])
    return any(_is_ui(message) for message in messages[:4])


def _is_stream(document: Document) -> bool:
    kinds = [row.get("type") for row in head(document, 200)]
    return len(CHUNKS & set(kinds)) >= 3 and any(
        isinstance(kind, str) and kind in ("text-delta", "tool-input-start", "start-step") for kind in kinds
    )


def _opened(message: dict[str, Any]) -> dict[str, Any]:
    """Mastra keeps the parts of a message inside its content."""
    content = get.obj(message, "content")
    return {**message, **content} if isinstance(content.get("parts"), list) else message


def _is_ui(message: dict[str, Any]) -> bool:
    message = _opened(message)
    parts = get.objects(message, "parts")
    typed = bool(parts) and all(isinstance(part.get("type"), str) for part in parts)
    return role_of(message.get("role")) in ("user", "assistant", "system") and (typed or bool(get.objects(message, "toolInvocations")))


def read(document: Document) -> Iterator[Draft]:
    if _is_stream(document):
        yield attempt(NAME, "", _read_stream, head(document, 10**6))
    elif get.items(first_episode(document), "messages"):
        for where, value in episodes(document):
            yield attempt(NAME, where, _read_one, value, where)
    else:
        messages = [value for _, value in episodes(document)]
        yield attempt(NAME, "", _read_one, {"messages": messages}, "")


def _read_one(value: Any, where: str) -> Draft:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise FormatError("is not a chat with `messages`", where=where)
    draft = Draft(NAME, where=where, orphans="as_user")
    read_facts(draft, value)
    steps: list[Step] = []
    for place, message in draft.each(value["messages"], "messages", "a message"):
        steps += _steps(draft, message, place)
    add_steps(draft, steps)
    return draft


def _steps(draft: Draft, message: dict[str, Any], where: str) -> list[Step]:
    message = _opened(message)
    parts = [_plain(draft, part, where) for part in get.items(message, "parts")]
    if not parts:
        parts = [message.get("content") or "", *get.objects(message, "toolInvocations")]
        parts = [part if isinstance(part, str) else {"type": "tool-invocation", "toolInvocation": part} for part in parts if part]
    role = role_of(message.get("role"))
    if role == "assistant":
        facts = get.obj(message, "metadata")
        return ordered_steps(
            draft, [part for part in parts if part is not None], where, read_usage(facts.get("usage") or facts.get("totalUsage"))
        )
    content = content_of(draft, [part for part in parts if part is not None], where)
    return [Said("system" if role == "system" else "user", content.text, content.images)]


def _plain(draft: Draft, part: Any, where: str) -> Any:
    """A part with the field names of the vocabulary; None for data that only the interface shows, which is counted."""
    kind = part.get("type") if isinstance(part, dict) else ""
    if not isinstance(kind, str):
        return part
    if kind in SILENT or kind.startswith(("data-", "source")):
        draft.unread(f"{kind} part", where)
        return None
    if kind == "file":
        media = get.text(part, "mediaType", "mimeType")
        if media.startswith("image/"):
            return {"type": "image", "url": part.get("url") or part.get("data"), "mimeType": media}
        return {
            "type": "file",
            "filename": part.get("filename") or media,
            "data": get.text(part, "url").partition(",")[2] or part.get("data"),
        }
    return part


def _read_stream(chunks: list[dict[str, Any]]) -> Draft:
    """The chunks of one streamed answer as the parts they build."""
    draft = Draft(NAME, orphans="as_user")
    parts: list[Any] = []
    texts: dict[str, dict[str, Any]] = {}
    tools: dict[str, dict[str, Any]] = {}
    for number, chunk in enumerate(chunks):
        kind, own = get.text(chunk, "type"), get.text(chunk, "toolCallId")
        name, _, phase = kind.partition("-")
        if name in ("text", "reasoning") and phase in ("start", "delta", "end"):
            key = f"{name} {get.text(chunk, 'id')}"
            if phase == "start" or key not in texts:
                texts[key] = {"type": name, "text": ""}
                parts.append(texts[key])
            texts[key]["text"] += get.text(chunk, "delta", "text")
        elif kind in ("tool-input-start", "tool-input-delta", "tool-input-available", "tool-input-error"):
            if own not in tools:
                tools[own] = {"type": "dynamic-tool", "toolCallId": own, "input": ""}
                parts.append(tools[own])
            tools[own]["toolName"] = get.text(chunk, "toolName") or tools[own].get("toolName", "")
            pieces = tools[own]["input"]
            tools[own]["input"] = (
                chunk["input"]
                if "input" in chunk
                else f"{pieces}{get.text(chunk, 'inputTextDelta')}"
                if isinstance(pieces, str)
                else pieces
            )
        elif kind in ("tool-output-available", "tool-output-error", "tool-output-denied"):
            tools.setdefault(own, {"type": "dynamic-tool", "toolCallId": own}).update(
                {key: chunk.get(key) for key in ("output", "errorText")}
            )
        elif kind == "start-step":
            parts.append({"type": "step-start"})
        elif kind in ("start", "finish-step", *SILENT):
            draft.model = draft.model or get.text(get.obj(chunk, "messageMetadata"), "model")
        else:
            draft.unread(kind or "chunk without a type", f"[{number}]")
    add_steps(draft, ordered_steps(draft, [part for part in parts if not _is_blank(part)], "stream"))
    return draft


def _is_blank(part: dict[str, Any]) -> bool:
    return part.get("type") in ("text", "reasoning") and not part.get("text")
