"""Connections of the dashboard send at once, though Streamlit's socket would have them wait."""

import runpy
import socket
from collections.abc import Iterator

import pytest

from pamer_lab.ui.shared import warm
from pamer_lab.ui.shared.page import ROUTER
from pamer_lab.ui.shared.sockets import send_at_once
from tests.event_loops import finished


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A socket made as Streamlit makes its own."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        yield made


def delayed(listening: socket.socket) -> bool:
    """Whether a connection that is accepted now waits before it sends."""
    with socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            return not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_connections_accepted_afterwards_do_not_wait(listening: socket.socket) -> None:
    assert delayed(listening)
    send_at_once()
    assert not delayed(listening)


def test_the_dashboard_does_it_when_its_server_starts(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "warm", lambda: None)
    monkeypatch.setattr("sys.argv", ["app.py"])
    ready = runpy.run_path(str(ROUTER), run_name="app")["ready"]

    async def start() -> None:
        async with ready(None):
            assert not delayed(listening)

    finished(start())
