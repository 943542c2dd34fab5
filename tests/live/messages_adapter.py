"""Anthropic's Messages API before a server that has only chat completions, such as `transformers serve`: text, complete or as a stream."""

from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from tests.loopback import LOCAL

PATIENCE = 300


@dataclass(frozen=True)
class MessagesAdapter:
    """An ASGI application; every piece of the model's text goes on when it comes."""

    upstream: str
    """Base URL of the chat completions."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        if scope["type"] == "lifespan":
            while (kind := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{kind}.complete"})
            await send({"type": f"{kind}.complete"})
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        assert scope["path"] == "/v1/messages"
        request = orjson.loads(body)
        kind = b"text/event-stream" if request.get("stream") else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        async for piece in _answer(self.upstream, request):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _answer(upstream: str, request: dict[str, Any]) -> AsyncIterator[bytes]:
    text, usage = "", {"input_tokens": 0, "output_tokens": 0}
    about = {"id": "msg_adapted", "type": "message", "role": "assistant", "model": request["model"], "stop_sequence": None}
    stream = bool(request.get("stream"))
    if stream:
        yield _event("message_start", message=about | {"content": [], "stop_reason": None, "usage": usage})
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    async for chunk in _chunks(upstream, request):
        if spent := chunk.get("usage"):
            usage = {"input_tokens": spent["prompt_tokens"], "output_tokens": spent["completion_tokens"]}
        for choice in chunk["choices"]:
            if piece := choice["delta"].get("content"):
                text += piece
                if stream:
                    yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    if stream:
        yield _event("content_block_stop", index=0)
        yield _event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=usage)
        yield _event("message_stop")
    else:
        yield orjson.dumps(about | {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage})


async def _chunks(upstream: str, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """The model's answer to the same messages, piece by piece."""
    system = [{"role": "system", "content": request["system"]}] if request.get("system") else []
    asked = {
        "model": request["model"],
        "messages": [*system, *request["messages"]],
        "max_tokens": request["max_tokens"],
        "temperature": 0.0,
    }
    asked |= {"stream": True, "stream_options": {"include_usage": True}}
    async with (
        httpx2.AsyncClient(timeout=PATIENCE, **LOCAL) as client,
        client.stream("POST", f"{upstream}/chat/completions", json=asked) as answer,
    ):
        async for line in answer.aiter_lines():
            data = line.removeprefix("data: ")
            if data != line and data != "[DONE]":
                yield orjson.loads(data)


def _event(name: str, **fields: Any) -> bytes:
    return f"event: {name}\n".encode() + b"data: " + orjson.dumps({"type": name, **fields}) + b"\n\n"
