"""A model server for tests and the bench: serves the three APIs, keeps every request it received, and simulates prefix-cache billing.

Its answer depends only on the request's text, so direct and proxied access can be compared. A client asks for a special answer with the
header `x-fake` (`status=429`, `wait=0.2`, `hold`, `cut=3`, `split`, `tool`), which a proxy forwards like any other. Tokens are a quarter
of a message's bytes, rounded up; cache marks do not count. Simulated: no model is called.
"""

import asyncio
import hashlib
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

import orjson

from pamer_lab.live.fake_answers import Billed, answered

Scope = MutableMapping[str, Any]
COUNT_TOKENS = "/v1/messages/count_tokens"
MODELS = {"object": "list", "data": [{"id": "fake", "object": "model", "created": 0, "owned_by": "pamer-lab"}]}


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    at: float
    billed: Billed | None = None
    """None: the request did not reach the model."""


@dataclass
class FakeUpstream:
    """An ASGI application."""

    clock: Callable[[], float] = time.monotonic
    lifetime: float = 300.0
    """Seconds a prefix stays cached after its last use."""
    reply: Callable[[dict[str, Any], str], str] = lambda request, digest: f"Answer {digest[:12]} … ✓"
    """The text of an answer, from the request and its digest."""
    ledger: list[Received] = field(default_factory=list)
    cancelled: int = 0
    """Streams whose client left before the end."""
    released: Event = field(default_factory=Event)
    """A stream with `hold` sends its first chunk, then waits for this event."""
    _cache: dict[bytes, float] = field(default_factory=dict)

    @property
    def totals(self) -> Billed:
        bills = [entry.billed for entry in self.ledger if entry.billed]
        return Billed(*(sum(getattr(bill, name) for bill in bills) for name in ("uncached", "read", "write", "output")))

    async def __call__(self, scope: Scope, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        if scope["type"] != "http":
            await _lifespan(scope, receive, send)
            return
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        target = scope["raw_path"].decode() + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        asked = dict(part.partition("=")[::2] for part in dict(headers).get("x-fake", "").split(",") if part)
        entry = Received(scope["method"], target, headers, body, self.clock())
        await asyncio.sleep(float(asked.get("wait", 0)))
        if "status" in asked or not scope["path"].startswith("/v1/"):
            self.ledger.append(entry)
            status = int(asked.get("status", 404))
            await _json(send, status, {"type": "error", "error": {"type": f"fake_{status}", "message": "asked for"}}, retry=status == 429)
            return
        await self._answer(entry, scope["path"], asked, receive, send)

    async def _answer(self, entry: Received, path: str, asked: dict[str, str], receive: Any, send: Any) -> None:
        if entry.method == "GET":
            self.ledger.append(entry)
            await _json(send, 200, MODELS)
            return
        try:
            request = orjson.loads(entry.body)
        except orjson.JSONDecodeError:
            request = None
        if not isinstance(request, dict):
            self.ledger.append(entry)
            await _json(send, 400, {"error": {"type": "invalid_request_error", "message": "not a JSON object"}})
            return
        pieces = _pieces(request)
        if path == COUNT_TOKENS:
            self.ledger.append(entry)
            await _json(send, 200, {"input_tokens": sum(map(_tokens, pieces))})
            return
        digest = hashlib.sha256(b"".join(pieces)).hexdigest()
        text = self.reply(request, digest)
        billed = self._bill(pieces, b"cache_control" in entry.body or path != "/v1/messages", _tokens(text.encode()))
        self.ledger.append(Received(entry.method, entry.target, entry.headers, entry.body, entry.at, billed))
        whole, events = answered(path, request, text, digest, billed, asked)
        if not request.get("stream"):
            await _json(send, 200, whole)
            return
        await self._stream(b"".join(events), asked, receive, send)

    def _bill(self, pieces: list[bytes], caches: bool, output: int) -> Billed:
        now, read, total = self.clock(), 0, sum(map(_tokens, pieces))
        digest, cached = hashlib.sha256(), True
        for piece in pieces:
            digest.update(piece)
            key = digest.digest()
            cached = cached and now - self._cache.get(key, float("-inf")) <= self.lifetime
            read += _tokens(piece) if cached and caches else 0
            if caches:
                self._cache[key] = now
        return Billed(0 if caches else total, read, total - read if caches else 0, output)

    async def _stream(self, data: bytes, asked: dict[str, str], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream; charset=utf-8")]})
        gone = asyncio.ensure_future(receive())
        chunks = [data[at : at + 7] for at in range(0, len(data), 7)] if "split" in asked else data.split(b"\n\n")
        try:
            for number, chunk in enumerate(chunks):
                if "cut" in asked and number == int(asked["cut"]):
                    raise ConnectionAbortedError("cut in mid-stream, as asked")
                if gone.done():
                    self.cancelled += 1
                    return
                end = b"" if "split" in asked or not chunk else b"\n\n"
                await send({"type": "http.response.body", "body": chunk + end, "more_body": True})
                await asyncio.sleep(float(asked.get("pace", 0)))
                while "hold" in asked and not self.released.is_set() and not gone.done():
                    await asyncio.sleep(0.01)
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()


def _pieces(request: dict[str, Any]) -> list[bytes]:
    """The parts of a request that a prefix cache compares, in the order in which the model reads them."""
    given = request.get("messages", request.get("input", []))
    listed = given if isinstance(given, list) else [given]
    return [
        orjson.dumps(unmarked(part)) for part in (request.get("tools"), request.get("system", request.get("instructions")), *listed) if part
    ]


def unmarked(value: Any) -> Any:
    """The value without prompt-cache marks."""
    if isinstance(value, dict):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


def _tokens(text: bytes) -> int:
    return (len(text) + 3) // 4


async def _json(send: Callable[..., Any], status: int, value: Any, *, retry: bool = False) -> None:
    body = orjson.dumps(value)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"x-request-id", b"req_fake")]
    headers += [(b"retry-after", b"7")] if retry else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(scope: Scope, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    while scope["type"] == "lifespan":
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return


@contextmanager
def serving(app: Any, port: int = 0) -> Iterator[str]:
    """Serve an ASGI application on loopback in a separate thread until the block ends; yields its address."""
    import uvicorn

    class Server(uvicorn.Server):
        """Stops at once: uvicorn checks for shutdown only ten times a second and waits for clients to disconnect."""

        async def main_loop(self) -> None:
            while not self.should_exit:
                await asyncio.sleep(0.01)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for listener in self.servers:
                listener.close()
            for connection in list(self.server_state.connections):
                connection.shutdown()

    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", ws="none", server_header=False, date_header=False)
    server = Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise OSError(f"no server could be started on port {port}")
        time.sleep(0.005)
    bound = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{bound}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
