"""The one way into the workspace."""

from pathlib import Path

from pamer_lab.importing import import_demo, import_paths, import_uploads
from pamer_lab.trajectory import Rejection
from pamer_lab.workspace import Workspace

CHAT = b'[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]'


def test_uploads_and_paths_give_the_same_trace(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(CHAT)
    first = import_uploads([("other.json", CHAT)], workspace)
    second = import_paths([file], workspace)
    assert first.traces[0]["trace_id"] == second.traces[0]["trace_id"]
    assert (first.known, second.known) == (0, 1)
    assert len(workspace.trace_rows()) == 1


def test_a_refused_file_is_reported_while_the_rest_goes_on(workspace: Workspace) -> None:
    result = import_uploads([("bad.json", b"{"), ("good.json", CHAT), ("empty.json", b"")], workspace)
    assert [item.path for item in result.rejected] == ["bad.json", "empty.json"]
    assert len(result.traces) == 1


def test_refusals_are_told_as_they_happen(workspace: Workspace, tmp_path: Path) -> None:
    told: list[Rejection] = []
    import_paths([tmp_path / "nowhere"], workspace, on_reject=told.append)
    assert told[0].reason == "does not exist"


def test_the_demo_is_readable_and_marked(workspace: Workspace) -> None:
    result = import_demo(workspace)
    assert result.traces and not result.rejected
    assert all(row["demo"] for row in workspace.trace_rows())
    assert not any(row["warnings"] for row in result.traces)
