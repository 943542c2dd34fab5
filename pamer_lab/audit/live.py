"""Live use: the controller of a profile, with every PaMER+ selection kept in the workspace's audit under the session's id.

The public `pamer_lab.load_controller`. Knows how to record; which parts a profile has is `controller.build`'s business.
"""

from pathlib import Path

from pamer_lab.audit.store import AuditStore
from pamer_lab.controller import build
from pamer_lab.controller.pamer import PamerController
from pamer_lab.controller.probe import Probe
from pamer_lab.controller.selection_record import Recorder, SelectionRecord
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.models.profiles import Profile
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.storage import Database
from pamer_lab.workspace import Workspace


class LiveRecorder:
    """Keeps selections as replay does; a live session is its own run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, record: SelectionRecord) -> None:
        AuditStore(self._database, run_id=record.session_id).record(record)


def load_controller(
    workspace: Workspace,
    profile: str | Profile = "embedded",
    device: str = "auto",
    *,
    kind: build.Kind = "pamer",
    settings: ControllerSettings | None = None,
    heads: HeadSet | str | Path | None = None,
    probe: Probe | None = None,
    recorder: Recorder | None = None,
) -> PamerController:
    """The controller a profile describes; without a `recorder`, PaMER+'s selections go to the workspace's audit."""
    recorder = recorder or LiveRecorder(workspace.database)
    return build.load_controller(workspace, profile, device, kind=kind, settings=settings, heads=heads, probe=probe, recorder=recorder)
