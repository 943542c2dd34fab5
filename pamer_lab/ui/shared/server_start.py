"""The server's start: the home page is prepared (libraries, data, and in an empty workspace the demo traces), and connections send at once.

The server answers once the page is ready, or after `MOST` seconds, whichever comes first.
Invariant: a fault here is logged and ignored: the first visit does the same work and shows what is wrong.
"""

import asyncio
import contextlib
import logging
import os
import socket
import threading
from importlib import import_module

import psutil
from streamlit.logger import get_logger
from streamlit.runtime.caching import cache_data_api
from streamlit.runtime.scriptrunner_utils import script_run_context

from pamer_lab.ui.shared.loaders import first_rows

MODULES = ("lancedb", "polars", "plotly.graph_objects", "tokenizers", "pamer_lab.ui.traces.library", "pamer_lab.ui.traces.adding")
"""In the order in which the home page needs them."""
MOST = 10.0
"""Seconds that the server waits at most: a slow disk or a large library delays the first page, not the server."""
NAME = "warm-up"
logger = logging.getLogger(__name__)


def warm() -> None:
    """Import what the home page imports, read the demo traces where there are no others, and draw its picture."""
    try:
        for name in MODULES:
            import_module(name)
        rows, _ = first_rows()
        import_module("pamer_lab.ui.traces.home").make_ready(rows)  # a page's own folder comes after this one
    except Exception as error:  # the first visit meets the same fault, where a reader sees it
        logger.info("the home page could not be made ready: %s", error)


def warm_up() -> threading.Thread:
    """The same in a thread, without blocking the caller."""
    thread = threading.Thread(target=warm, daemon=True, name=NAME)
    for module in (script_run_context, cache_data_api):  # they warn where a cache is filled without a page
        get_logger(module.__name__).addFilter(lambda record: threading.current_thread().name != NAME)
    thread.start()
    return thread


async def warmed(thread: threading.Thread) -> None:
    """Wait until the home page is ready, at most `MOST` seconds."""
    await asyncio.to_thread(thread.join, MOST)


def send_at_once() -> None:
    """Switch off TCP's delay for connections that sockets of this process accept from now on.

    Streamlit leaves it on: an answer's body, and each message of a page, wait up to 40 ms until the browser has confirmed what was sent
    before. A connection has the options of the socket that accepted it.
    """
    with contextlib.suppress(OSError, psutil.Error):  # without it pages are slower, nothing else
        for found in psutil.Process().net_connections("tcp"):
            if found.status == psutil.CONN_LISTEN:
                with socket.socket(fileno=os.dup(found.fd)) as listening:
                    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
