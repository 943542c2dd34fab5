"""Live use: selections are recorded without anybody asking for it."""

from typing import Any

import pamer_lab
from pamer_lab.audit import AuditStore
from pamer_lab.controller import FixedProbe
from pamer_lab.controller.router import SelectionRecord
from pamer_lab.workspace import Workspace
from tests.controller.world import NO, YES, history, turn


def live(workspace: Workspace, votes: tuple[float, ...], **parts: Any) -> Any:
    return pamer_lab.load_controller(workspace, device="cpu", kind="pamer+", probe=FixedProbe(votes), **parts)


def test_a_live_session_leaves_its_selections_in_the_workspaces_audit_under_its_own_id(workspace: Workspace) -> None:
    messages = history(8)
    assert live(workspace, YES).transform("session one", messages)[1].action == "compress"
    _, decision = live(workspace, NO).transform("session one", messages + turn(8))
    assert decision.action in ("recall", "pass") and not decision.error
    (row,) = AuditStore(workspace.database).rows(run_id="session one")
    assert (row["session_id"], row["turn"], row["router"]) == ("session one", 9, "embedded-3 index")
    assert row["cited_steps"] == list(decision.restored_steps)


def test_a_recorder_of_the_callers_own_is_used_instead(workspace: Workspace) -> None:
    kept: list[SelectionRecord] = []

    class Kept:
        def record(self, record: SelectionRecord) -> None:
            kept.append(record)

    messages = history(8)
    live(workspace, YES).transform("s", messages)
    live(workspace, NO, recorder=Kept()).transform("s", messages + turn(8))
    assert [record.session_id for record in kept] == ["s"] and AuditStore(workspace.database).rows() == []
