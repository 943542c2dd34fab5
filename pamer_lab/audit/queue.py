"""Which selections there are to review, in which order, and how many are done. Pure.

Filters only remove entries; the queue keeps the order of run and turn; progress is counted over the shown queue.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pamer_lab.audit.doubts import doubt_of
from pamer_lab.audit.reviews import Review

Show = Literal["all", "unreviewed", "reviewers disagree", "not right"]
"""`all`: everything. `unreviewed`: what the reader has not reviewed yet. `reviewers disagree`: what got different verdicts.
`not right`: what some reviewer would have chosen differently."""

SHOWS: tuple[Show, ...] = get_args(Show)


@dataclass(frozen=True)
class Filters:
    """What the reader wants to see; an empty text leaves nothing out."""

    run_id: str = ""
    outcome: str = ""
    show: Show = "all"


@dataclass(frozen=True)
class Entry:
    """One selection in the queue."""

    row: Mapping[str, Any]
    verdicts: Mapping[str, str]
    """Reviewer -> newest verdict."""
    doubtful: frozenset[str] = frozenset()
    """Reviewers whose newest review should be looked at again (`doubts.py`)."""

    @property
    def audit_id(self) -> str:
        return str(self.row["audit_id"])

    @property
    def disagreed(self) -> bool:
        return len(set(self.verdicts.values())) > 1

    def by(self, reviewer: str) -> str:
        return self.verdicts.get(reviewer, "")


def entries(rows: Sequence[Mapping[str, Any]], current: Sequence[Review]) -> list[Entry]:
    """Selections with their reviews; `current` holds the newest revisions only."""
    said: dict[str, list[Review]] = {}
    for review in current:
        said.setdefault(review.audit_id, []).append(review)
    return [_entry(row, said.get(row["audit_id"], [])) for row in rows]


def _entry(row: Mapping[str, Any], reviews: Sequence[Review]) -> Entry:
    doubtful = frozenset(review.reviewer for review in reviews if doubt_of(review, set(row.get("steps") or ())))
    return Entry(row, {review.reviewer: review.verdict for review in reviews}, doubtful)


def filtered(queue: Sequence[Entry], filters: Filters, reviewer: str) -> list[Entry]:
    """The entries that fit; `unreviewed` means by this reviewer, or by anybody if no name is given."""

    def fits(entry: Entry) -> bool:
        match filters.show:
            case "unreviewed":
                return not (entry.by(reviewer) if reviewer else entry.verdicts)
            case "reviewers disagree":
                return entry.disagreed
            case "not right":
                return any(verdict != "right" for verdict in entry.verdicts.values())
            case _:
                return True

    return [
        entry
        for entry in queue
        if (not filters.run_id or entry.row["run_id"] == filters.run_id)
        and (not filters.outcome or entry.row["outcome"] == filters.outcome)
        and fits(entry)
    ]


def next_unreviewed(queue: Sequence[Entry], audit_id: str, reviewer: str) -> str:
    """The next entry after this one that the reviewer has not reviewed, wrapping around; this one if there is none."""
    names = [entry.audit_id for entry in queue]
    place = names.index(audit_id) if audit_id in names else -1
    for entry in [*queue[place + 1 :], *queue[: max(place, 0)]]:
        if not entry.by(reviewer):
            return entry.audit_id
    return audit_id


def progress(queue: Sequence[Entry], reviewer: str) -> tuple[int, int]:
    """How many of the queue this reviewer has reviewed, and how many there are."""
    return sum(bool(entry.by(reviewer)) for entry in queue), len(queue)
