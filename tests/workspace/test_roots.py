"""The folders that pages may read."""

from pathlib import Path

import pytest

from pamer_lab.config import ROOTS_VARIABLE
from pamer_lab.errors import InputError
from pamer_lab.reviewer_mode import CONFIG_FILE
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_paths
from pamer_lab.workspace.roots import readable_roots


def test_the_variable_wins_over_the_workspace_which_wins_over_the_start_folder(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("start", "named", "in config", "sessions"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "start")
    assert readable_roots(sessions=[str(tmp_path / "sessions"), str(tmp_path / "absent")]) == (tmp_path / "start", tmp_path / "sessions")
    workspace.path.mkdir(exist_ok=True)
    (workspace.path / CONFIG_FILE).write_text(f'roots = ["{tmp_path / "in config"}"]\n')
    assert readable_roots() == (tmp_path / "in config",)
    monkeypatch.setenv(ROOTS_VARIABLE, f"{tmp_path / 'named'}:{tmp_path / 'absent'}")
    assert readable_roots() == (tmp_path / "named",)


def test_a_service_that_starts_in_the_root_folder_does_not_open_it(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    monkeypatch.chdir("/")
    assert Path("/") not in readable_roots()


def test_no_root_allows_nothing(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(InputError):
        import_paths([tmp_path / "a.json"], workspace, roots=())
