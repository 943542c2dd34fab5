"""The fake upstream's answers in the formats of the three APIs, complete and as stream events. Simulated: no model is called."""

from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True)
class Billed:
    """Tokens of one request as this server bills them."""

    uncached: int = 0
    read: int = 0
    write: int = 0
    output: int = 0


Answer = tuple[dict[str, Any], list[bytes]]


def answered(path: str, request: dict[str, Any], text: str, digest: str, billed: Billed, asked: dict[str, str]) -> Answer:
    """The answer to a request at a path: the complete one, and the events of a stream."""
    match path:
        case "/v1/messages":
            return _messages(request, text, digest, billed, asked)
        case "/v1/responses":
            return _responses(request, text, digest, billed, asked)
    return _chat(request, text, digest, billed, asked)


def _event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + (data if isinstance(data, bytes) else orjson.dumps(data)) + b"\n\n"


def _chat(request: dict[str, Any], text: str, digest: str, billed: Billed, asked: dict[str, str]) -> Answer:
    sent = billed.uncached + billed.read + billed.write
    usage = {
        "prompt_tokens": sent,
        "completion_tokens": billed.output,
        "total_tokens": sent + billed.output,
        "prompt_tokens_details": {"cached_tokens": billed.read, "cache_write_tokens": billed.write},
    }
    about = {"id": f"chatcmpl-{digest[:16]}", "created": 0, "model": request.get("model", "fake")}
    call = {"id": f"call_{digest[:8]}", "type": "function", "function": {"name": "look", "arguments": '{"at": 1.0}'}}
    calls = {"tool_calls": [call]} if "tool" in asked else {}
    end = "tool_calls" if calls else "stop"
    message = {"role": "assistant", "content": text, **calls}
    whole = about | {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": usage}
    half = len(text) // 2
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text[:half]}, {"content": text[half:]}]
    deltas += [{"tool_calls": [{"index": 0, **call}]}] if calls else []
    chunk = about | {"object": "chat.completion.chunk"}
    events = [_event(chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    events.append(_event(chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]}))
    if (request.get("stream_options") or {}).get("include_usage"):
        events.append(_event(chunk | {"choices": [], "usage": usage}))
    return whole, [*events, _event(b"[DONE]")]


def _messages(request: dict[str, Any], text: str, digest: str, billed: Billed, asked: dict[str, str]) -> Answer:
    usage = {
        "input_tokens": billed.uncached,
        "cache_read_input_tokens": billed.read,
        "cache_creation_input_tokens": billed.write,
        "output_tokens": billed.output,
    }
    call = {"type": "tool_use", "id": f"toolu_{digest[:8]}", "name": "look", "input": {"at": 1}}
    content: list[dict[str, Any]] = [{"type": "text", "text": text}, *([call] if "tool" in asked else [])]
    end = "tool_use" if "tool" in asked else "end_turn"
    about = {
        "id": f"msg_{digest[:16]}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "fake"),
        "stop_sequence": None,
    }
    start = about | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    events = [_event({"type": "message_start", "message": start}, "message_start"), _event({"type": "ping"}, "ping")]
    for index, part in enumerate(content):
        empty: dict[str, Any] = {"text": ""} if part["type"] == "text" else {"input": {}}
        opened = part | empty
        events.append(_event({"type": "content_block_start", "index": index, "content_block": opened}, "content_block_start"))
        pieces: list[dict[str, Any]] = [{"type": "input_json_delta", "partial_json": '{"at": 1}'}]
        if part["type"] == "text":
            pieces = [{"type": "text_delta", "text": text[: len(text) // 2]}, {"type": "text_delta", "text": text[len(text) // 2 :]}]
        events += [_event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta") for delta in pieces]
        events.append(_event({"type": "content_block_stop", "index": index}, "content_block_stop"))
    ended = {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}, "usage": {"output_tokens": billed.output}}
    events += [_event(ended, "message_delta"), _event({"type": "message_stop"}, "message_stop")]
    return about | {"content": content, "stop_reason": end, "usage": usage}, events


def _responses(request: dict[str, Any], text: str, digest: str, billed: Billed, asked: dict[str, str]) -> Answer:
    sent = billed.uncached + billed.read + billed.write
    usage = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": billed.read, "cache_write_tokens": billed.write},
        "output_tokens": billed.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + billed.output,
    }
    part = {"type": "output_text", "text": text, "annotations": []}
    item: dict[str, Any] = {"type": "message", "id": f"msg_{digest[:12]}", "role": "assistant", "status": "completed", "content": [part]}
    call = {"type": "function_call", "id": f"fc_{digest[:8]}", "call_id": f"call_{digest[:8]}", "name": "look", "arguments": "{}"}
    output = [item, *([call | {"status": "completed"}] if "tool" in asked else [])]
    about = {
        "id": f"resp_{digest[:16]}",
        "object": "response",
        "created_at": 0,
        "model": request.get("model", "fake"),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    whole = about | {"status": "completed", "output": output, "usage": usage}
    steps: list[dict[str, Any]] = [{"type": "response.created", "response": about | {"status": "in_progress", "output": []}}]
    for index, entry in enumerate(output):
        steps.append(
            {"type": "response.output_item.added", "output_index": index, "item": entry | ({"content": []} if entry is item else {})}
        )
        if entry is item:
            at = {"item_id": item["id"], "output_index": index, "content_index": 0}
            steps.append({"type": "response.content_part.added", **at, "part": part | {"text": ""}})
            steps.append({"type": "response.output_text.delta", **at, "delta": text, "logprobs": []})
            steps.append({"type": "response.output_text.done", **at, "text": text, "logprobs": []})
            steps.append({"type": "response.content_part.done", **at, "part": part})
        steps.append({"type": "response.output_item.done", "output_index": index, "item": entry})
    steps.append({"type": "response.completed", "response": whole})
    return whole, [_event(step | {"sequence_number": number}, step["type"]) for number, step in enumerate(steps)]
