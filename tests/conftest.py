"""What all tests share: a fresh workspace, and the real traces where they are next to the project."""

import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from streamlit.components.v2 import manifest_scanner

from pamer_lab.workspace import Workspace

PROJECT = Path(__file__).resolve().parents[1]
REAL_TRACES = PROJECT.parent / "shared" / "traces" / "open"

_numbers = count()

# How long one example takes depends on what else the machine does.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def _packages_are_looked_through_once() -> Iterator[None]:
    """AppTest searches all installed packages for components each time it opens a page, which takes longer than most pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(autouse=True)
def _main_stays_main() -> Iterator[None]:
    """A page under test becomes the main module; a process that a later test starts would run it again."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the person who runs the tests has confirmed does not matter, and stays as it is."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / f"settings-{next(_numbers)}"))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty workspace, which commands and pages use too."""
    folder = tmp_path / "workspace"
    monkeypatch.setenv("PAMER_LAB_HOME", str(folder))
    return Workspace(folder)


@pytest.fixture(scope="session")
def real_traces() -> Path:
    """The folder of real trajectories; tests that need it are skipped where it is not there."""
    if not REAL_TRACES.is_dir():
        pytest.skip("the real traces are not next to this checkout")
    return REAL_TRACES
