"""The proxy itself: an ASGI application that passes requests on and answers as the upstream does, byte for byte.

A model call goes to the desk first, for a view of it and for the record; everything else passes untouched. Invariant: nothing of an answer
is changed, held back or added; a client that leaves ends the call upstream; an error on our side never costs the client its answer.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore2
import orjson

from pamer_lab.hosts import host_allowed, own_origin
from pamer_lab.live.call import Call, Outgoing
from pamer_lab.live.control import Control
from pamer_lab.live.credentials import in_address
from pamer_lab.live.desk import Desk
from pamer_lab.live.exchange import Exchange, Watcher
from pamer_lab.live.upstream import UNREACHABLE, Headers, Upstream, passed_on
from pamer_lab.live.wire import PATHS

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CLIENT_LEFT = "the client left"
OURS = "/_pamer/"
"""Paths of the lab itself; they never go upstream."""
LENGTH = (b"content-length",)
MOST_BODY = 256_000_000
"""Bytes of a model call; no server takes as many, and the proxy has to keep them all."""
RESENT = range(400, 500)
"""Answers to an edited body after which the original is sent."""
NOT_RESENT = (401, 403, 408, 409, 429)
"""Of those: what the body has nothing to do with."""


class UpstreamCut(Exception):
    """Raised when an answer breaks off after its beginning went to the client: the client's connection is broken off too."""


class Proxy:
    """One upstream, one desk."""

    def __init__(
        self, upstream: Upstream, desk: Desk, control: Control, *, deadline: float = 5.0, anthropic: Upstream | None = None
    ) -> None:
        """`anthropic`: where calls of Anthropic's API go, where that is another server."""
        self.upstream, self._anthropic = upstream, anthropic or upstream
        self.desk, self.control, self.deadline = desk, control, deadline
        # Heads take all cores anyway, and one model serves one caller at a time.
        self._deciders = ThreadPoolExecutor(1 if desk.workshop.policy.needs_models else 4, "pamer-decide")
        self._watcher = Watcher(desk)
        self._writers = ThreadPoolExecutor(2, "pamer-record")
        self._tasks: set[asyncio.Future[Any]] = set()
        self._open = 0

    @property
    def busy(self) -> bool:
        """Whether anything is still to be answered or recorded."""
        return bool(self._open or self._tasks or self._watcher.busy)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        self._open += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._open -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if reason := refusal(scope["headers"]):
            await answer(send, 403, {"error": {"type": "refused_by_pamer_lab", "message": reason}})
        elif "websocket" in headers.get("upgrade", "").lower():
            await answer(send, 426, {"error": {"type": "upgrade_refused", "message": "no WebSocket here; use HTTP"}})
        elif scope["path"].startswith(OURS):
            await self.control(scope, headers, receive, send)
        elif scope["method"] == "POST" and scope["path"] in PATHS:
            await self._while_there(receive, send, lambda body: self._model_call(scope, headers, body, send))
        else:
            await self._pass_through(scope, receive, send)

    async def _while_there(self, receive: Receive, send: Send, work: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
        """Do the work with the request's body; a client that leaves ends it, and a body beyond every server's limit is refused."""
        chunks: list[bytes] = []
        size = 0
        async for chunk in _body(receive):
            chunks.append(chunk)
            size += len(chunk)
            if size > MOST_BODY:
                message = f"the body is larger than {MOST_BODY // 1_000_000} MB"
                await answer(send, 413, {"error": {"type": "request_too_large", "message": message}})
                return
        task = asyncio.ensure_future(work(b"".join(chunks)))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and gone.done():
                task.cancel()
            await task
        except asyncio.CancelledError:
            if not gone.done():
                raise
        finally:
            gone.cancel()

    async def _model_call(self, scope: Scope, headers: dict[str, str], body: bytes, send: Send) -> None:
        headers = headers | in_address(scope["query_string"])
        call = Call(PATHS[scope["path"]], scope["path"], headers, body, self.desk.clock(), self._server(scope).url)
        exchange = Exchange(call)
        loop = asyncio.get_running_loop()
        if self.desk.waits_for_nothing(call):
            taken, out = None, Outgoing(body)
            self._watcher.expect(call, loop)
        else:
            taken = loop.run_in_executor(self._deciders, self.desk.take, call)
            out = await self._in_time(taken, call)
        try:
            await self._exchange(scope, out, exchange, send)
        except UNREACHABLE as error:
            exchange.error = f"{type(error).__name__}: {error}"
            if exchange.started:
                raise UpstreamCut(exchange.error) from error
            exchange.status = 502
            await answer(send, 502, unreachable(exchange.error))
        except asyncio.CancelledError:
            exchange.error = exchange.error or CLIENT_LEFT
            raise
        finally:
            if taken is None:
                self._watcher.ended(exchange)
            else:
                self._later(self._record(exchange, taken))

    async def _in_time(self, taken: "asyncio.Future[Outgoing]", call: Call) -> Outgoing:
        """The desk's decision, or after the deadline what can be sent without it."""
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(taken), self.deadline)
        if call.settle(late=True):
            return self.desk.decider.late(call)
        return await taken

    async def _exchange(self, scope: Scope, out: Outgoing, exchange: Exchange, send: Send) -> None:
        """Send the request; where an edited one is refused, send the original once."""
        call = exchange.call
        response = await self._sent(scope, out)
        if out.edited and response.status in RESENT and response.status not in NOT_RESENT:
            await response.aclose()
            await asyncio.get_running_loop().run_in_executor(self._writers, self.desk.refused, call, response.status)
            response = await self._sent(scope, Outgoing(call.body))
        try:
            exchange.status = response.status
            exchange.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            exchange.first = time.perf_counter()
            await send({"type": "http.response.start", "status": response.status, "headers": passed_on(response.headers)})
            exchange.started = True
            async for chunk in response.aiter_stream():
                exchange.keep(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            exchange.ended = time.perf_counter()
            with contextlib.suppress(*UNREACHABLE):
                await response.aclose()
        await send({"type": "http.response.body", "body": b""})

    async def _sent(self, scope: Scope, out: Outgoing) -> httpcore2.Response:
        server = self._server(scope)
        target = server.target(scope["raw_path"], scope["query_string"])
        without = (b"host", *LENGTH, *((b"content-encoding",) if out.edited else ()))
        headers: Headers = [*passed_on(scope["headers"], without=without), (b"content-length", str(len(out.body)).encode())]
        return await server.send(scope["method"], target, headers, out.body)

    def _server(self, scope: Scope) -> Upstream:
        """The server that a request is for: Anthropic's API has its own paths, and a header on those it shares."""
        path = scope["path"].removeprefix("/v1")
        named = any(name.lower() == b"anthropic-version" for name, _ in scope["headers"])
        return self._anthropic if named or path == "/messages" or path.startswith("/messages/") else self.upstream

    async def _pass_through(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Anything that asks no model: the client's bytes as they come, and the answer's."""
        names = {name.lower() for name, _ in scope["headers"]}
        has_body = bool(names & {b"content-length", b"transfer-encoding"})
        headers = passed_on(scope["headers"], without=(b"host",))
        if b"transfer-encoding" in names and b"content-length" not in names:
            headers.append((b"transfer-encoding", b"chunked"))
        server = self._server(scope)
        target = server.target(scope["raw_path"], scope["query_string"])
        started, status = False, 502
        try:
            response = await server.send(scope["method"], target, headers, _body(receive) if has_body else b"")
            try:
                status = response.status
                await send({"type": "http.response.start", "status": status, "headers": passed_on(response.headers)})
                started = True
                async for chunk in response.aiter_stream():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                await response.aclose()
            await send({"type": "http.response.body", "body": b""})
        except UNREACHABLE as error:
            if started:
                raise UpstreamCut(str(error)) from error
            await answer(send, 502, unreachable(f"{type(error).__name__}: {error}"))
        finally:
            self._later(asyncio.get_running_loop().run_in_executor(self._writers, self.desk.side, scope["path"], status))

    async def _record(self, exchange: Exchange, taken: "asyncio.Future[Outgoing]") -> None:
        await asyncio.wait({taken})
        await asyncio.get_running_loop().run_in_executor(self._writers, exchange.record, self.desk)

    def _later(self, work: Any) -> None:
        """Work that continues after the answer was sent."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until everything that was answered is recorded."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        await self._watcher.settled()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.shutdown":
                await self.settled()
                await self.upstream.close()
                await self._anthropic.close()
                self._deciders.shutdown(wait=False, cancel_futures=True)
                self._watcher.close()
                self._writers.shutdown()
            await send({"type": f"{event['type']}.complete"})
            if event["type"] == "lifespan.shutdown":
                return


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ConnectionResetError(CLIENT_LEFT)
        yield event.get("body", b"")
        if not event.get("more_body"):
            return


def refusal(headers: list[tuple[bytes, bytes]]) -> str:
    """Why a request is not passed on: another name than this computer's, or a page of another site."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    hosts, origins = found.get("host", []), found.get("origin", [])
    if len(hosts) != 1 or not host_allowed(hosts[0]):
        return "the proxy answers under names of this computer only"
    if any(not own_origin(origin, hosts[0]) for origin in origins):
        return "the proxy does not answer to pages of other sites"
    if not origins and (found.get("sec-fetch-site") or [""])[0] in ("cross-site", "same-site"):
        return "the proxy does not answer to pages of other sites"
    return ""


def unreachable(reason: str) -> dict[str, Any]:
    """What a client gets instead of an answer that never began."""
    return {"error": {"type": "upstream_unreachable", "message": f"the model server did not answer ({reason})"}}


async def answer(send: Send, status: int, value: Any) -> None:
    """An answer of the lab's own."""
    body = orjson.dumps(value)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
