"""The layer in front of Streamlit: which requests reach the dashboard, and whose browser may read files of this computer.

Each start makes a token and prints a link that carries it; a browser that opens the link keeps the token as a cookie. Uploads, viewing and
replay need no token, `may_read_this_computer` does, and `--token required` asks for it everywhere.
Invariant: a request for a foreign host, or from another site's page, never reaches Streamlit, which would look up its own address online.
"""

import hmac
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import streamlit as st
from streamlit import config

from pamer_lab.config import TOKEN_VARIABLE
from pamer_lab.errors import InputError
from pamer_lab.hosts import LOOPBACK, host_allowed, own_origin
from pamer_lab.reviewer_mode import reviewer_mode

MODES = ("files", "required")
"""What needs the token. `files`: reading this computer's files; `required`: everything."""
TOKEN = secrets.token_urlsafe(32)
"""Made once per start; never stored."""
HEADERS = {
    # 'self': Streamlit shows a component in a frame of its own page.
    "content-security-policy": "frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Sent with every response."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


def may_read_this_computer() -> bool:
    """Whether this browser may read files of this computer: it opened the link printed at start, and reviewer mode is off.

    Ask before a page reads any path or looks for sessions; if it is False, show `how_to_get_in()` instead. What may be read is
    `workspace.roots.readable_roots()`: pass it as `roots` to `import_paths` or `iter_traces`, which refuse everything else.
    """
    kept = st.context.cookies.get(cookie_name())
    return isinstance(kept, str) and _known(kept) and not reviewer_mode()


def how_to_get_in() -> str:
    """What to do if `may_read_this_computer` is False, as one sentence."""
    return (
        "To read files on this computer from this page, open the link that was printed when the dashboard was started; it contains a token."
    )


def token_mode(words: Iterable[str] = ()) -> str:
    """`files` or `required`: from `--token MODE` among the words after the script's name, else from `PAMER_LAB_TOKEN`."""
    given = list(words)
    asked = given[given.index("--token") + 1 :][:1] if "--token" in given else [os.environ.get(TOKEN_VARIABLE) or MODES[0]]
    if asked and asked[0] in MODES:
        return asked[0]
    raise InputError(f"the token mode must be one of {', '.join(MODES)}; correct --token or {TOKEN_VARIABLE}")


def cookie_name() -> str:
    """One per port: browsers send the cookies of a host to each of its ports."""
    return f"pamer_lab_{_option('server.port')}"


def link() -> str:
    """The address of the dashboard with the token."""
    named = config.is_manually_set("browser.serverAddress")
    address = str(_option("browser.serverAddress" if named else "server.address") or "localhost")
    host = "localhost" if address in ("0.0.0.0", "::") else f"[{address}]" if ":" in address else address  # noqa: S104 - only shown
    scheme, base = "https" if _option("server.sslCertFile") else "http", str(_option("server.baseUrlPath") or "").strip("/")
    return f"{scheme}://{host}:{_option('server.port')}/{base + '/' if base else ''}?token={TOKEN}"


@asynccontextmanager
async def announced(_: Any) -> AsyncIterator[None]:
    """Print the link when the server starts; for Streamlit's `lifespan`."""
    print(f"\n  PaMER Lab: {link()}\n", flush=True)
    yield


class Gate:
    """An ASGI layer; Streamlit is `app`."""

    def __init__(self, app: App, mode: str = MODES[0]) -> None:
        self._app, self._required = app, mode == "required"

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        send = _with_headers(send)
        reason = refusal(scope["type"], headers)
        if reason:
            await _refuse(scope["type"], send, 403, reason)
            return
        given = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)).get("token")
        if scope["type"] == "http" and given is not None:
            await self._admit(scope, send, given)
        elif self._required and not _known(_cookie(headers)):
            await _refuse(scope["type"], send, 401, "This dashboard needs a token. " + CLOSED)
        else:
            await self._app(scope, receive, send)

    async def _admit(self, scope: MutableMapping[str, Any], send: Send, given: str) -> None:
        """Keep the token as a cookie and take it out of the address, so that no shared link or screenshot contains it."""
        if not _known(given):
            await _refuse("http", send, 403, "This link is from an earlier start of the dashboard. " + CLOSED)
            return
        rest = [
            (name, value) for name, value in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True) if name != "token"
        ]
        place = "/" + quote(scope["path"].lstrip("/\\")) + (f"?{urlencode(rest)}" if rest else "")
        # Lax: with Strict, a link in a web terminal would set the cookie, but the redirect would not send it.
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{cookie_name()}={TOKEN}; Path=/; HttpOnly; SameSite=Lax{secure}"
        more = [(b"location", place.encode()), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
        await _answer(send, 303, "", more)


CLOSED = "Open the link that was printed when it started."


def refusal(kind: str, headers: Iterable[tuple[str, str]]) -> str:
    """Why a request with these headers is refused; empty if it is not."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    hosts, origins, own = found.get("host", []), found.get("origin", []), _option("server.corsAllowedOrigins") or ()
    if len(hosts) != 1 or not host_allowed(hosts[0], _option("server.allowedHosts") or LOOPBACK):
        return "The dashboard does not accept this host name; add it to server.allowedHosts if it is yours."
    if len(origins) > 1 or any(not own_origin(origin, hosts[0], own) for origin in origins) or (kind == "websocket" and not origins):
        return (
            "The dashboard does not accept requests from pages of other sites; add the origin to server.corsAllowedOrigins if it is yours."
        )
    fetched = {name: (found.get(f"sec-fetch-{name}") or [""])[0] for name in ("site", "mode", "dest")}
    opened = fetched["mode"] == "navigate" and fetched["dest"] == "document"
    if not origins and fetched["site"] in ("cross-site", "same-site") and not opened:
        return "The dashboard cannot be embedded in another site's page."
    return ""


def _known(token: str) -> bool:
    return hmac.compare_digest(token.encode("utf-8", "replace"), TOKEN.encode())


def _cookie(headers: Iterable[tuple[str, str]]) -> str:
    for name, value in headers:
        for pair in value.split(";") if name == "cookie" else ():
            key, _, found = pair.strip().partition("=")
            if key == cookie_name():
                return found
    return ""


def _option(name: str) -> Any:
    return st.get_option(name)


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            kept = [pair for pair in message.get("headers", []) if pair[0].decode("latin-1").lower() not in HEADERS]
            message["headers"] = [*kept, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
        await send(message)

    return sent


async def _refuse(kind: str, send: Send, status: int, reason: str) -> None:
    if kind == "websocket":  # before it is accepted, this is answered with 403
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, status, reason)


async def _answer(send: Send, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await send({"type": "http.response.start", "status": status, "headers": [kind, *headers]})
    await send({"type": "http.response.body", "body": text.encode()})


def mode_of_this_start() -> str:
    """The token mode of `streamlit run app.py -- --token MODE`, or of the environment."""
    return token_mode(sys.argv[1:])
