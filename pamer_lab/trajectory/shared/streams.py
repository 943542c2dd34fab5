"""Streamed answers of chat APIs -> the complete answer.

Knows server-sent events (and lists of the events themselves) of OpenAI chat and Responses, Anthropic, Gemini and Bedrock. Invariant: the
pieces of one text, thought or call are joined in their order; an event of no known shape is left out.
"""

from typing import Any

from pamer_lab.trajectory.shared import get

Answer = dict[str, Any]


def events_of(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a stream: the `data:` of server-sent events, or one object per line."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        line = line.strip().removeprefix("data:").strip()
        if line.startswith("{") and isinstance(value := get.parsed(line), dict):
            found.append(value)
    return found


def looks_streamed(text: str) -> bool:
    head = text.lstrip()[:40]
    return head.startswith(("data:", "event:", "id:", ": ", ":"))


def answer_of(events: list[dict[str, Any]]) -> Answer | None:
    """One API response, as if it had not been streamed; None where the events are no answer."""
    events = [get.obj(event, "data") if event.keys() <= {"event", "data"} and get.obj(event, "data") else event for event in events]
    kinds = {event.get("type") for event in events}
    if "message_start" in kinds or "content_block_delta" in kinds:
        return _anthropic(events)
    if any(isinstance(kind, str) and kind.startswith("response.") for kind in kinds):
        return _responses(events)
    if any(isinstance(event.get("choices"), list) for event in events):
        return _chat(events)
    if any(isinstance(event.get("candidates"), list) for event in events):
        return _gemini(events)
    if any("contentBlockDelta" in event or "messageStart" in event for event in events):
        return _bedrock(events)
    return None


def _chat(events: list[Answer]) -> Answer:
    text: list[str] = []
    thought: list[str] = []
    calls: dict[int, Answer] = {}
    about: Answer = {}
    for event in events:
        about |= {key: event[key] for key in ("id", "model", "usage") if event.get(key)}
        for choice in get.objects(event, "choices")[:1]:
            delta = get.obj(choice, "delta", "message")
            text += [delta["content"]] if isinstance(delta.get("content"), str) else []
            thought += [get.text(delta, "reasoning_content", "reasoning")]
            for place, piece in enumerate(get.objects(delta, "tool_calls")):
                index = get.count(piece, "index")
                call = calls.setdefault(place if index is None else index, {"id": "", "function": {"name": "", "arguments": ""}})
                call["id"] = call["id"] or get.text(piece, "id")
                inner = get.obj(piece, "function")
                call["function"]["name"] = call["function"]["name"] or get.text(inner, "name")
                call["function"]["arguments"] += inner["arguments"] if isinstance(inner.get("arguments"), str) else ""
    message: Answer = {"role": "assistant", "content": "".join(text) or None}
    message |= {"reasoning_content": "".join(thought)} if any(thought) else {}
    message |= {"tool_calls": [calls[index] for index in sorted(calls)]} if calls else {}
    return about | {"choices": [{"message": message}]}


def _anthropic(events: list[Answer]) -> Answer:
    found: Answer = {"type": "message", "role": "assistant", "stop_reason": None}
    blocks: dict[int, Answer] = {}
    pieces: dict[int, list[str]] = {}
    for event in events:
        index = get.count(event, "index") or 0
        match event.get("type"):
            case "message_start":
                found |= {key: value for key, value in get.obj(event, "message").items() if key in ("id", "model", "usage")}
            case "content_block_start":
                blocks[index] = dict(get.obj(event, "content_block"))
            case "content_block_delta":
                delta, block = get.obj(event, "delta"), blocks.setdefault(index, {"type": "text", "text": ""})
                for key in ("text", "thinking"):
                    if isinstance(delta.get(key), str):
                        block[key] = (block.get(key) or "") + delta[key]
                pieces.setdefault(index, []).append(get.text(delta, "partial_json"))
            case "message_delta":
                found["stop_reason"] = get.obj(event, "delta").get("stop_reason")
                found["usage"] = get.obj(found, "usage") | {key: value for key, value in get.obj(event, "usage").items() if value}
    for index, parts in pieces.items():
        if "".join(parts):
            arguments = get.parsed("".join(parts))
            blocks[index]["input"] = "".join(parts) if arguments is None else arguments
    found["content"] = [blocks[index] for index in sorted(blocks)]
    return found


def _responses(events: list[Answer]) -> Answer:
    """The completed response, its items taken from the events where it was sent without them."""
    about: Answer = {}
    items: dict[int, Answer] = {}
    texts: dict[int, list[str]] = {}
    for event in events:
        index = get.count(event, "output_index") or 0
        about |= {key: value for key, value in get.obj(event, "response").items() if value}
        match event.get("type"):
            case "response.output_item.added":
                items.setdefault(index, get.obj(event, "item"))
            case "response.output_item.done":
                items[index] = get.obj(event, "item")
                texts.pop(index, None)
            case "response.output_text.delta":
                texts.setdefault(index, []).append(get.text(event, "delta"))
    for index, pieces in texts.items():
        items[index] = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "".join(pieces)}]}
    if not about.get("output"):
        about["output"] = [items[index] for index in sorted(items) if items[index]]
    return about


def _gemini(events: list[Answer]) -> Answer:
    parts: list[Any] = []
    about: Answer = {}
    for event in events:
        about |= {key: event[key] for key in ("usageMetadata", "modelVersion", "responseId") if event.get(key)}
        for part in get.items(get.obj(get.first(event, "candidates"), "content"), "parts"):
            joins = (
                isinstance(part, dict)
                and part.keys() == {"text"}
                and parts
                and isinstance(parts[-1], dict)
                and parts[-1].keys() == {"text"}
            )
            if joins and isinstance(part["text"], str):
                parts[-1] = {"text": f"{parts[-1]['text']}{part['text']}"}
            else:
                parts.append(part)
    return about | {"candidates": [{"content": {"role": "model", "parts": parts}}]}


def _bedrock(events: list[Answer]) -> Answer:
    blocks: dict[int, Answer] = {}
    given: dict[int, list[str]] = {}
    about: Answer = {}
    for event in events:
        start, delta = get.obj(event, "contentBlockStart"), get.obj(event, "contentBlockDelta")
        if start:
            blocks[get.count(start, "contentBlockIndex") or 0] = dict(get.obj(start, "start"))
        if delta:
            index, piece = get.count(delta, "contentBlockIndex") or 0, get.obj(delta, "delta")
            block = blocks.setdefault(index, {})
            if isinstance(piece.get("text"), str):
                block["text"] = (block.get("text") or "") + piece["text"]
            given.setdefault(index, []).append(get.text(get.obj(piece, "toolUse"), "input"))
        about |= {"usage": get.obj(event, "metadata").get("usage")} if get.obj(event, "metadata") else {}
    for index, pieces in given.items():
        if "".join(pieces) and isinstance(use := blocks[index].get("toolUse"), dict):
            blocks[index]["toolUse"] = use | {"input": get.parsed("".join(pieces))}
    return about | {"output": {"message": {"role": "assistant", "content": [blocks[index] for index in sorted(blocks)]}}}
