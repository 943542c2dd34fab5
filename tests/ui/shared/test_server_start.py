"""The home page's libraries and demo traces are there before the first visit, and connections send at once."""

import runpy
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pamer_lab import figures
from pamer_lab.ui.shared import loaders, server_start
from pamer_lab.ui.shared.page import ROUTER
from pamer_lab.ui.traces import home
from pamer_lab.workspace import Workspace
from tests.event_loops import finished


def test_an_empty_workspace_has_the_demo_traces_after_it_and_they_are_read_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    real = loaders.import_demo
    monkeypatch.setattr(loaders, "import_demo", lambda lab: read.append(lab) or real(lab))
    visitor = threading.Thread(target=loaders.first_rows)
    visitor.start()
    server_start.warm_up().join()
    visitor.join()
    assert len(read) == 1 and all(row["demo"] for row in workspace.trace_rows()) and workspace.trace_rows()


def test_the_picture_of_the_home_page_is_drawn_before_the_first_visit(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = figures.context
    monkeypatch.setattr(figures, "context", lambda runs, *rest, **more: drawn.append(len(runs)) or real(runs, *rest, **more))
    server_start.warm()
    demo = home.find_demo(loaders.first_rows()[0])
    assert drawn == [len(demo.heads)] and demo.heads
    home.make_ready(workspace.trace_rows())
    assert len(drawn) == 1


def test_a_server_waits_for_its_home_page_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait, daemon=True)
    thread.start()
    monkeypatch.setattr(server_start, "MOST", 0.0)
    finished(server_start.warmed(thread))
    assert thread.is_alive()
    done.set()
    monkeypatch.setattr(server_start, "MOST", 60.0)
    finished(server_start.warmed(thread))
    assert not thread.is_alive()


def test_a_fault_while_warming_up_is_left_to_the_first_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_start, "MODULES", ("no_such_module",))
    server_start.warm()


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
    server_start.send_at_once()
    assert not delayed(listening)


def test_the_dashboard_does_it_when_its_server_starts(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_start, "warm", lambda: None)
    monkeypatch.setattr("sys.argv", ["app.py"])
    ready = runpy.run_path(str(ROUTER), run_name="app")["ready"]

    async def start() -> None:
        async with ready(None):
            assert not delayed(listening)

    finished(start())
