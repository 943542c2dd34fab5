"""Lets the server's connections send at once.

Streamlit opens its socket in a way that leaves TCP's own delay on: an answer's body, and each message of a page, wait up to 40 ms until
the browser has confirmed what was sent before. A connection has the options of the socket that accepted it.
"""

import contextlib
import os
import socket

import psutil


def send_at_once() -> None:
    """Switch the delay off for connections that sockets of this process accept from now on."""
    with contextlib.suppress(OSError, psutil.Error):  # without it pages are slower, nothing else
        for found in psutil.Process().net_connections("tcp"):
            if found.status == psutil.CONN_LISTEN:
                with socket.socket(fileno=os.dup(found.fd)) as listening:
                    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
