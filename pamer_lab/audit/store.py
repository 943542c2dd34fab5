"""Audit rows: one for every selection of PaMER+, accepted or refused.

Implements the controller's `Recorder`. Invariant: a row is written in one commit, in live use before the request goes out, and is
never changed afterwards; only a replay that resumes deletes rows, which it records again.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from pamer_lab.audit.tables import SELECTIONS
from pamer_lab.controller.router import SelectionRecord
from pamer_lab.storage import Database, equals

SHORT = [name for name in SELECTIONS.schema.names if name not in ("query", "answer", "candidates")]
"""Columns shown in lists; the others are read for a single row only."""


class AuditStore:
    """Writes and reads audit rows of one run."""

    def __init__(self, database: Database, *, run_id: str = "", trace_id: str = "") -> None:
        self.database = database
        self.run_id = run_id
        self.trace_id = trace_id

    def record(self, record: SelectionRecord) -> None:
        """Keep one selection."""
        self.record_all([record])

    def record_all(self, records: Sequence[SelectionRecord]) -> None:
        """Keep several selections in one commit; known ones are skipped."""
        now = datetime.now(UTC)
        own = {"run_id": self.run_id, "trace_id": self.trace_id, "created_at": now}
        rows = {name: _row(record) | own | {"audit_id": name} for record in records for name in [self._id(record)]}
        if rows:
            self.database.insert(SELECTIONS, list(rows.values()))
            self.database.tidy(SELECTIONS)

    def forget_from(self, turn: int) -> None:
        """Delete this run's rows from a turn on: a replay that resumes there records them again, under the same ids."""
        where = f"{equals('run_id', self.run_id)} AND turn >= {int(turn)}"
        if self.run_id and self.database.exists(SELECTIONS) and self.database.count(SELECTIONS, where):
            self.database.delete(SELECTIONS, where)

    def _id(self, record: SelectionRecord) -> str:
        """An id made of the selection's content: replaying a run again gives the same rows, and reviews stay with them."""
        named = [self.run_id, record.session_id, record.turn, record.router, record.answer, record.outcome, record.reason, record.cache]
        return f"a-{hashlib.sha256(orjson.dumps(named)).hexdigest()[:16]}"

    def rows(self, *, run_id: str = "", where: str = "") -> list[dict[str, Any]]:
        """Short rows in the order of run and turn."""
        if not self.database.exists(SELECTIONS):
            return []
        filters = " AND ".join(part for part in (equals("run_id", run_id) if run_id else "", where) if part)
        found = self.database.rows(SELECTIONS, where=filters, columns=SHORT)
        return sorted(found, key=lambda row: (row["run_id"], row["session_id"], row["turn"], row["created_at"]))

    def row(self, audit_id: str) -> dict[str, Any] | None:
        """One row with everything in it."""
        found = self.database.rows(SELECTIONS, where=equals("audit_id", audit_id)) if self.database.exists(SELECTIONS) else []
        return found[0] if found else None

    def full_rows(self) -> list[dict[str, Any]]:
        found = self.database.rows(SELECTIONS) if self.database.exists(SELECTIONS) else []
        return sorted(found, key=lambda row: (row["created_at"], row["audit_id"]))


def _row(record: SelectionRecord) -> dict[str, Any]:
    """A record's columns."""
    row = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return row | {name: [vars(candidate) for candidate in row[name]] for name in ("candidates", "near_misses")}


def restored_tokens(row: Mapping[str, Any]) -> int:
    """Tokens restored into the request; for older rows, which lack the column, the chosen steps' tokens, an upper bound."""
    known = row.get("restored_tokens")
    return int(known if known is not None else row["chosen_tokens"] or 0)


def steps_of(rows: Sequence[dict[str, Any]]) -> dict[str, set[int]]:
    """Audit id -> chosen steps."""
    return {row["audit_id"]: set(row["steps"] or []) for row in rows}


class LiveRecorder:
    """Records the selections of live sessions as a replay does; a live session is its own run."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, record: SelectionRecord) -> None:
        AuditStore(self._database, run_id=record.session_id).record(record)
