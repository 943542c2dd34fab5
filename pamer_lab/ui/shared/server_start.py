"""A fast first page: prepared at the server's start (libraries, data, demo traces), sent without delay, with the charts' script preloaded.

The server answers once the page is ready, or after `MOST` seconds, whichever comes first.
Invariant: a fault here is logged and ignored: the first visit does the same work and shows what is wrong.
"""

import asyncio
import contextlib
import logging
import os
import socket
import threading
from collections.abc import MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import streamlit
from streamlit.logger import get_logger
from streamlit.runtime.caching import cache_data_api
from streamlit.runtime.scriptrunner_utils import script_run_context

from pamer_lab.ui.shared.gate import App, Message, Receive, Send
from pamer_lab.ui.shared.loaders import first_rows

MODULES = ("lancedb", "polars", "plotly.graph_objects", "tokenizers", "pamer_lab.ui.traces.library", "pamer_lab.ui.traces.adding")
"""In the order in which the home page needs them."""
MOST = 10.0
"""Maximum seconds that the server waits: a slow disk or a large library delays the first page, not the server."""
NAME = "warm-up"
SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"
CHARTS = "PlotlyChart.*.js"
logger = logging.getLogger(__name__)


def warm() -> None:
    """Import what the home page imports, read the demo traces if there are no others, and draw its chart."""
    try:
        for name in MODULES:
            import_module(name)
        rows, _ = first_rows()
        import_module("pamer_lab.ui.traces.home").make_ready(rows)  # by name, since page folders come after this one in the import order
    except Exception as error:  # the first visit meets the same fault, where a reader sees it
        logger.info("the home page could not be made ready: %s", error)


def warm_up() -> threading.Thread:
    """The same in a thread, without blocking the caller."""
    thread = threading.Thread(target=warm, daemon=True, name=NAME)
    for module in (script_run_context, cache_data_api):  # they warn when a cache is filled without a page
        get_logger(module.__name__).addFilter(lambda record: threading.current_thread().name != NAME)
    thread.start()
    return thread


async def warmed(thread: threading.Thread) -> None:
    """Wait until the home page is ready, at most `MOST` seconds."""
    await asyncio.to_thread(thread.join, MOST)


def send_at_once() -> None:
    """Switch off Nagle's algorithm for connections that sockets of this process accept from now on.

    Streamlit leaves it on: a response's body, and each message of a page, wait up to 40 ms until the browser has acknowledged what was
    sent before. A connection inherits the options of the socket that accepted it.
    """
    with contextlib.suppress(OSError, psutil.Error):  # without it pages are slower, nothing else
        for found in psutil.Process().net_connections("tcp"):
            if found.status == psutil.CONN_LISTEN:
                with socket.socket(fileno=os.dup(found.fd)) as listening:
                    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def chart_link(scripts: Path = SCRIPTS) -> bytes:
    """A `Link` header; the address is relative to the page, as Streamlit's own are, and the page's own scripts come first."""
    return ", ".join(f"<./static/js/{path.name}>; rel=modulepreload; fetchpriority=low" for path in sorted(scripts.glob(CHARTS))).encode()


class Preload:
    """An ASGI layer that names Streamlit's script for charts in the response to a page's address.

    It is the largest by far, and without this the browser learns of it when the first chart arrives. Its name contains a hash, so it is
    looked up in the installed Streamlit; without such a script, no header is sent.
    """

    def __init__(self, app: App, link: bytes | None = None) -> None:
        self._app, self._link = app, chart_link() if link is None else link

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message):
                message["headers"] = [*message["headers"], (b"link", self._link)]
            await send(message)

        await self._app(scope, receive, sent if self._link else send)


def _is_page(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in message.get("headers", ()))
