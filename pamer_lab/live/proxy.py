"""The proxy itself: an ASGI application that forwards requests and returns the upstream's answers byte for byte.

A model call goes to the desk, which decides on a view and records it; everything else passes through untouched. Invariant: nothing in an
answer is changed, held back or added; a client that leaves ends the upstream call; an error on our side never costs the client its answer.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpcore2

from pamer_lab.live.asgi import CLIENT_LEFT, Receive, Scope, Send, answer, body_of, refusal, unreachable, while_there
from pamer_lab.live.call import Call, Outgoing
from pamer_lab.live.control import Control
from pamer_lab.live.credentials import in_address
from pamer_lab.live.desk import Desk
from pamer_lab.live.exchange import Exchange, Watcher
from pamer_lab.live.upstream import UNREACHABLE, Headers, Upstream, passed_on
from pamer_lab.live.wire import PATHS

OURS = "/_pamer/"
"""Prefix of the lab's own paths; they never go upstream."""
LENGTH = (b"content-length",)
PREVIOUS = b'"previous_response_id"'
MOST_BODY = 256_000_000
"""Maximum size of a model call in bytes: more than any server accepts. The proxy keeps the complete body in memory."""
MOST_BODIES = 4 * MOST_BODY
"""Maximum size in bytes of all model calls that are being received or answered."""
RESENT = range(400, 500)
"""Status codes of an edited request after which the original is sent."""
NOT_RESENT = (401, 403, 408, 409, 429)
"""Exceptions to `RESENT`: errors that have nothing to do with the body."""


class UpstreamCut(Exception):
    """Raised when an answer breaks off after its start was sent: the client's connection is cut too."""


class Proxy:
    """One upstream, one desk."""

    def __init__(
        self, upstream: Upstream, desk: Desk, control: Control, *, deadline: float = 5.0, anthropic: Upstream | None = None
    ) -> None:
        """`deadline`: seconds to wait for a decision. `anthropic`: the server for Anthropic's API, if it is a different one."""
        self.upstream, self._anthropic = upstream, anthropic or upstream
        self.desk, self.control, self.deadline = desk, control, deadline
        # Heads take all cores anyway, and one model serves one caller at a time.
        self._deciders = ThreadPoolExecutor(1 if desk.workshop.policy.needs_models else 4, "pamer-decide")
        self._readers = ThreadPoolExecutor(4, "pamer-read")
        self._watcher = Watcher(desk)
        self._writers = ThreadPoolExecutor(2, "pamer-record")
        self._tasks: set[asyncio.Future[Any]] = set()
        self._open = 0
        self._kept = 0
        """Bytes of the model calls that are being received or answered."""

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
        headers |= in_address(scope["query_string"])
        if reason := refusal(scope["headers"]):
            await answer(send, 403, {"error": {"type": "refused_by_pamer_lab", "message": reason}})
        elif not scope["raw_path"].startswith(b"/"):
            await answer(send, 400, {"error": {"type": "not_a_path", "message": "ask for a path of this server, not for another address"}})
        elif "websocket" in headers.get("upgrade", "").lower():
            await answer(send, 426, {"error": {"type": "upgrade_refused", "message": "no WebSocket here; use HTTP"}})
        elif scope["path"].startswith(OURS):
            await self.control(scope, headers, receive, send)
        elif scope["method"] == "POST" and scope["path"] in PATHS:
            await self._model_request(scope, headers, receive, send)
        else:
            complete = asyncio.Event()
            await while_there(receive, complete, self._pass_through(scope, headers, body_of(receive, complete), send))

    async def _model_request(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> None:
        """Answer a model call once its body has arrived; refuse it if this body, or all bodies together, are too large."""
        chunks: list[bytes] = []
        size, complete = 0, asyncio.Event()
        try:
            async for chunk in body_of(receive, complete):
                chunks.append(chunk)
                size += len(chunk)
                self._kept += len(chunk)
                if size > MOST_BODY:
                    message = f"the body is larger than {MOST_BODY // 1_000_000} MB"
                    await answer(send, 413, {"error": {"type": "request_too_large", "message": message}})
                    return
                if self._kept > MOST_BODIES:
                    message = f"requests of more than {MOST_BODIES // 1_000_000} MB are being answered; try again"
                    await answer(send, 503, {"error": {"type": "too_many_large_requests", "message": message}})
                    return
            body = b"".join(chunks)
            chunks.clear()
            await while_there(receive, complete, self._model_call(scope, headers, body, send))
        finally:
            self._kept -= size

    async def _model_call(self, scope: Scope, headers: dict[str, str], body: bytes, send: Send) -> None:
        call = Call(PATHS[scope["path"]], scope["path"], headers, body, self.desk.clock(), self._server(scope).url)
        exchange = Exchange(call)
        loop = asyncio.get_running_loop()
        taken: asyncio.Future[Outgoing] | None = None
        if self.desk.waits_for_nothing:
            self._watcher.expect(call, loop)
        else:
            taken = asyncio.ensure_future(self._take(call))
        try:
            out = Outgoing(body) if taken is None else await self._in_time(taken, call)
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

    async def _take(self, call: Call) -> Outgoing:
        """Read a call, then decide on it; only the decision may have to wait for others."""
        if PREVIOUS in call.body and self._tasks:  # it names an answer that may not be recorded yet
            await asyncio.wait(set(self._tasks))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._readers, self.desk.read, call)
        return await loop.run_in_executor(self._deciders, self.desk.take, call)

    async def _in_time(self, taken: "asyncio.Future[Outgoing]", call: Call) -> Outgoing:
        """The desk's decision, or after the deadline what can be sent without it."""
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(taken), self.deadline)
        if call.settle():
            late = asyncio.get_running_loop().run_in_executor(self._readers, self.desk.decider.late, call)
            return await asyncio.shield(late)  # recorded even if the client leaves
        return await asyncio.shield(taken)

    async def _exchange(self, scope: Scope, out: Outgoing, exchange: Exchange, send: Send) -> None:
        """Send the request; if the server refuses an edited one, send the original once."""
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
        """The server for a request: Anthropic's API has its own paths, and a header on the paths that both APIs share."""
        path = scope["path"].removeprefix("/v1")
        named = any(name.lower() == b"anthropic-version" for name, _ in scope["headers"])
        return self._anthropic if named or path == "/messages" or path.startswith("/messages/") else self.upstream

    async def _pass_through(self, scope: Scope, headers: dict[str, str], body: AsyncIterator[bytes], send: Send) -> None:
        """Forward a request that does not query a model, and its answer, as the bytes arrive."""
        content: bytes | AsyncIterator[bytes] = body
        if not headers.keys() & {"content-length", "transfer-encoding"}:
            content = b"".join([chunk async for chunk in body])  # empty, but unless it is read, a leaving client goes unnoticed
        chunked = "transfer-encoding" in headers  # then a content-length is invalid, but the next server may trust it
        given = passed_on(scope["headers"], without=(b"host", *(LENGTH if chunked else ())))
        if chunked:
            given.append((b"transfer-encoding", b"chunked"))
        server = self._server(scope)
        target = server.target(scope["raw_path"], scope["query_string"])
        started, status = False, 502
        try:
            response = await server.send(scope["method"], target, given, content)
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
            self._later(asyncio.get_running_loop().run_in_executor(self._writers, self.desk.side, scope["path"], headers, status))

    async def _record(self, exchange: Exchange, taken: "asyncio.Future[Outgoing]") -> None:
        await asyncio.wait({taken})
        await asyncio.get_running_loop().run_in_executor(self._writers, exchange.record, self.desk)

    def _later(self, work: Any) -> None:
        """Run work that continues after the answer was sent."""
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
                self._readers.shutdown()
                self._deciders.shutdown(wait=False, cancel_futures=True)
                self._watcher.close()
                self._writers.shutdown()
            await send({"type": f"{event['type']}.complete"})
            if event["type"] == "lifespan.shutdown":
                return
