"""The home page's libraries and demo traces are there before the first visit."""

import threading
from typing import Any

import pytest

from pamer_lab.ui.shared import loaders, warm
from pamer_lab.workspace import Workspace


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


def test_a_fault_while_warming_up_is_left_to_the_first_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "MODULES", ("no_such_module",))
    warm.warm()
