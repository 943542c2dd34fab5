import pytest

from pamer_lab.runs.values import RunInfo
from pamer_lab.workspace import Workspace
from tests.report.world import filled


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, list[RunInfo]]:
    """One filled workspace for all tests that only read it."""
    return filled(tmp_path_factory.mktemp("report") / "workspace")
