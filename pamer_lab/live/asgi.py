"""The proxy's ASGI helpers: reading a request's body, sending the lab's own answers, and cancelling work when the client leaves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

import orjson

from pamer_lab.hosts import host_allowed, own_origin

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CLIENT_LEFT = "the client left"


async def body_of(receive: Receive, complete: asyncio.Event) -> AsyncIterator[bytes]:
    """A request's bytes as they arrive; `complete` is set after the last one."""
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ConnectionResetError(CLIENT_LEFT)
        yield event.get("body", b"")
        if not event.get("more_body"):
            complete.set()
            return


async def while_there(receive: Receive, complete: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do the work; cancel it if the client leaves after its request is complete."""

    async def left() -> None:
        await complete.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
        await task
    except asyncio.CancelledError:
        if not gone.done():
            raise
    finally:
        task.cancel()
        gone.cancel()


def refusal(headers: list[tuple[bytes, bytes]]) -> str:
    """Why a request is refused: its host name is not this computer's, or it comes from a page of another site. Empty if allowed."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    hosts, origins = found.get("host", []), found.get("origin", [])
    if len(hosts) != 1 or not host_allowed(hosts[0]):
        return "the proxy accepts only host names of this computer"
    if any(not own_origin(origin, hosts[0]) for origin in origins):
        return "the proxy does not accept requests from pages of other sites"
    if not origins and (found.get("sec-fetch-site") or [""])[0] in ("cross-site", "same-site"):
        return "the proxy does not accept requests from pages of other sites"
    return ""


def unreachable(reason: str) -> dict[str, Any]:
    """What a client gets when the upstream sent no answer."""
    return {"error": {"type": "upstream_unreachable", "message": f"the model server did not answer ({reason})"}}


async def answer(send: Send, status: int, value: Any) -> None:
    """Send an answer of the lab itself."""
    body = orjson.dumps(value)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
