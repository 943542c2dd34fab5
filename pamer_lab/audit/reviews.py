"""Reviews of selections: a verdict, the steps a reviewer would have chosen, and a note, with every edit kept.

An edit is a new revision under the same reviewer and selection. Concurrent saves each take the next free revision number and retry if it
is taken.
Invariant: no review is ever changed or lost; the newest revision counts.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from pamer_lab.audit.tables import MOST_STEP, NAME_CHARACTERS, NOTE_CHARACTERS, REVIEWS, are_steps
from pamer_lab.errors import InputError, StorageError
from pamer_lab.storage import Database, TableSpec, equals

Verdict = Literal["right", "missing evidence", "unnecessary step", "wrong step"]
"""`right`: as the reviewer would have chosen. `missing evidence`: a needed step was not chosen. `unnecessary step`: one of the chosen
was not needed. `wrong step`: another step was needed instead."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SAVE_ATTEMPTS = 50


@dataclass(frozen=True)
class Review:
    """One revision of one person's review of one selection."""

    audit_id: str
    reviewer: str
    revision: int
    verdict: Verdict
    steps: tuple[int, ...]
    """The steps the reviewer would have chosen."""
    note: str
    created_at: datetime
    as_shown: bool | None = None
    """True if a form stored the steps as it showed them; None for older reviews, whose steps some forms lost, and for the library's."""


def checked_name(reviewer: str, note: str) -> str:
    """The reviewer's name in its stored form; `InputError` if it is missing, or if the name or the note is too long."""
    name = " ".join(reviewer.split())
    if not name:
        raise InputError("a review needs the reviewer's name")
    if len(name) > NAME_CHARACTERS:
        raise InputError(f"the reviewer's name is longer than {NAME_CHARACTERS} characters")
    if len(note) > NOTE_CHARACTERS:
        raise InputError(f"the note is longer than {NOTE_CHARACTERS:,} characters")
    return name


def add_revision(database: Database, spec: TableSpec, row: dict[str, Any], known: Sequence[int]) -> dict[str, Any]:
    """Add a review as the next revision after the known ones; returns its row."""
    first = max(known, default=-1) + 1
    for revision in range(first, first + SAVE_ATTEMPTS):
        row = row | {"revision": revision}
        if database.insert(spec, [row])[0]:
            database.tidy(spec)
            return row
    raise StorageError(f"the review was not saved because of {SAVE_ATTEMPTS} concurrent edits; save it again")


class ReviewStore:
    """Writes and reads reviews."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(
        self,
        audit_id: str,
        reviewer: str,
        verdict: str,
        steps: tuple[int, ...],
        note: str,
        written: datetime,
        *,
        as_shown: bool | None = None,
    ) -> bool:
        """Add a review that was written elsewhere, with its own time; False if it is already stored."""
        same = (verdict, tuple(sorted(steps)), note, written.astimezone(UTC))
        known = self.history(audit_id, " ".join(reviewer.split()))
        if any((review.verdict, review.steps, review.note, review.created_at.astimezone(UTC)) == same for review in known):
            return False
        self.save(audit_id, reviewer, verdict, steps, note, written=written, as_shown=as_shown)
        return True

    def save(
        self,
        audit_id: str,
        reviewer: str,
        verdict: str,
        steps: tuple[int, ...] = (),
        note: str = "",
        *,
        written: datetime | None = None,
        as_shown: bool | None = None,
    ) -> Review:
        """Add a review, or a revision of one; `written` is its time, by default now."""
        name = checked_name(reviewer, note)
        if verdict not in VERDICTS:
            raise InputError(f"unknown verdict {verdict!r}; known: {', '.join(VERDICTS)}")
        if not are_steps(steps) or len(set(steps)) != len(steps):
            raise InputError(f"the steps of a review must be distinct step numbers up to {MOST_STEP:,}")
        known = [review.revision for review in self.history(audit_id, name)]
        review = Review(audit_id, name, 0, verdict, tuple(sorted(steps)), note, written or datetime.now(UTC), as_shown)
        return Review(**add_revision(self.database, REVIEWS, asdict(review), known))

    def history(self, audit_id: str, reviewer: str = "") -> list[Review]:
        """All revisions, oldest first; of one reviewer or of all."""
        where = equals("audit_id", audit_id) + (f" AND {equals('reviewer', reviewer)}" if reviewer else "")
        return self._read(where)

    def all(self) -> list[Review]:
        """Every revision of every review, oldest first."""
        return self._read("")

    def current(self) -> list[Review]:
        """The newest revision of every review."""
        newest = {(review.audit_id, review.reviewer): review for review in self._read("")}
        return list(newest.values())

    def _read(self, where: str) -> list[Review]:
        rows = self.database.rows(REVIEWS, where=where) if self.database.exists(REVIEWS) else []
        found = [Review(**{**row, "steps": tuple(row["steps"] or ())}) for row in rows]
        return sorted(found, key=lambda review: (review.audit_id, review.reviewer, review.revision))
