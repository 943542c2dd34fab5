"""Recording live sessions: every PaMER+ selection is kept in the workspace's audit under the session's id."""

from pamer_lab.audit.store import AuditStore
from pamer_lab.controller.router import SelectionRecord
from pamer_lab.storage import Database


class LiveRecorder:
    """Keeps selections as replay does; a live session is its own run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, record: SelectionRecord) -> None:
        AuditStore(self._database, run_id=record.session_id).record(record)
