"""HTTP servers on loopback for the length of a test: they answer at once and end at once. What a client of theirs needs."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from typing import Any

LOOK_EVERY = 0.01
"""Seconds between two looks at whether the server should end; the standard library's half second is longer than most tests."""
LOCAL: dict[str, Any] = {"trust_env": False, "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}
"""For each call of a client: no proxy, and no certificates, which take 17 ms to read and are not needed."""


@contextmanager
def listening(server: HTTPServer) -> Iterator[str]:
    """Serve until the end of the block; gives the server's address.

    Without Nagle's algorithm: an answer's head and body are two writes, and the second would wait 40 ms for the first's receipt.
    """
    server.RequestHandlerClass.disable_nagle_algorithm = True  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(LOOK_EVERY,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
