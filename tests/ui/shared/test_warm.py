"""The home page's libraries and demo traces are there before the first visit."""

import threading
from typing import Any

import pytest

from pamer_lab import figures
from pamer_lab.ui.shared import loaders, warm
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
    warm.warm_up().join()
    visitor.join()
    assert len(read) == 1 and all(row["demo"] for row in workspace.trace_rows()) and workspace.trace_rows()


def test_the_picture_of_the_home_page_is_drawn_before_the_first_visit(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = figures.context
    monkeypatch.setattr(figures, "context", lambda runs, *rest, **more: drawn.append(len(runs)) or real(runs, *rest, **more))
    warm.warm()
    demo = home.find_demo(loaders.first_rows()[0])
    assert drawn == [len(demo.heads)] and demo.heads
    home.make_ready(workspace.trace_rows())
    assert len(drawn) == 1


def test_a_server_waits_for_its_home_page_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait, daemon=True)
    thread.start()
    monkeypatch.setattr(warm, "MOST", 0.0)
    finished(warm.warmed(thread))
    assert thread.is_alive()
    done.set()
    monkeypatch.setattr(warm, "MOST", 60.0)
    finished(warm.warmed(thread))
    assert not thread.is_alive()


def test_a_fault_while_warming_up_is_left_to_the_first_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "MODULES", ("no_such_module",))
    warm.warm()
