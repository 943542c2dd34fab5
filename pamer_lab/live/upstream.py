"""The model server: one connection pool; headers and bytes are forwarded unchanged.

Follows no redirects, adds no headers, decodes nothing and sets no time limit on answers: the client's own limits apply.
"""

import ssl
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2

from pamer_lab.errors import InputError

Headers = list[tuple[bytes, bytes]]

HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade proxy-connection".split()
)
"""Headers that concern one connection only."""
OWN = (b"x-session-id", b"x-pamer-")
"""Prefixes of headers for the lab itself; they never go upstream."""
CONNECT_SECONDS = 30.0
KEPT_OPEN = 4.0
"""Seconds that an idle connection is used again: less than uvicorn and Node keep theirs, so that no request meets a closing one."""
UNREACHABLE = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, httpcore2.ProxyError, OSError)
"""Errors when a server is down, slow to connect, or breaks off."""


@dataclass(frozen=True)
class Upstream:
    """Where requests go."""

    url: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"the upstream must be an http or https address, not {self.url[:200]!r}")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InputError("the upstream must be an address without password, query or fragment; keys are sent by the client")

    @cached_property
    def _base(self) -> bytes:
        return urlsplit(self.url).path.rstrip("/").encode()

    @cached_property
    def _origin(self) -> tuple[bytes, bytes, int]:
        parts = urlsplit(self.url)
        return parts.scheme.encode(), (parts.hostname or "").encode(), parts.port or (443 if parts.scheme == "https" else 80)

    @cached_property
    def host(self) -> bytes:
        return urlsplit(self.url).netloc.encode()

    @cached_property
    def _pool(self) -> httpcore2.AsyncConnectionPool:
        scheme, name, _ = self._origin
        context = None
        if scheme == b"https":
            import certifi

            context = ssl.create_default_context(cafile=certifi.where())
        limits: dict[str, Any] = {"max_connections": None, "max_keepalive_connections": 100, "keepalive_expiry": KEPT_OPEN}
        proxy = getproxies().get(scheme.decode())
        if proxy and not proxy_bypass(name.decode()) and name not in (b"localhost", b"127.0.0.1", b"::1"):
            return httpcore2.AsyncHTTPProxy(proxy, ssl_context=context, **limits)
        return httpcore2.AsyncConnectionPool(ssl_context=context, **limits)

    def target(self, path: bytes, query: bytes) -> bytes:
        """The path and query to request: the client's, appended to the upstream's path without repeating a common `/v1`."""
        base = self._base
        if base.endswith(b"/v1") and (path == b"/v1" or path.startswith(b"/v1/")):
            base = base[: -len(b"/v1")]
        return base + path + (b"?" + query if query else b"")

    async def send(self, method: str, target: bytes, headers: Headers, content: bytes | AsyncIterable[bytes]) -> httpcore2.Response:
        """Send a request; returns the response before its body is read. The caller closes it."""
        scheme, name, port = self._origin
        url = httpcore2.URL(scheme=scheme, host=name, port=port, target=target)
        extensions = {"timeout": {"connect": CONNECT_SECONDS}}
        request = httpcore2.Request(method, url, headers=[(b"host", self.host), *headers], content=content, extensions=extensions)
        return await self._pool.handle_async_request(request)

    async def close(self) -> None:
        if "_pool" in self.__dict__:
            await self._pool.aclose()


def passed_on(headers: Iterable[tuple[bytes, bytes]], *, without: Iterable[bytes] = ()) -> Headers:
    """The headers that are forwarded, in their order."""
    listed = list(headers)
    named = {token.strip().lower() for name, value in listed if name.lower() == b"connection" for token in value.split(b",")}
    dropped = HOP | named | set(without)
    return [(name, value) for name, value in listed if name.lower() not in dropped and not name.lower().startswith(OWN)]
