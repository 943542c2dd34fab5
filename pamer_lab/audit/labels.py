"""Human review of rule-based labels: a sample to review, the reviews, and the agreement with its interval.

The sample is drawn by a hash of trace, point and target, taking positives and negatives of each target in turn, so that everyone sees
the same labels in the same order. Each save is a new revision under its reviewer; the newest counts.
Invariant: a review records the label value that it was given for; if the label has changed since, the review does not count.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from pamer_lab.audit.reviews import add_revision, checked_name
from pamer_lab.probes.metrics import wilson
from pamer_lab.storage import Database, TableSpec
from pamer_lab.trajectory.values import Label

LABEL_REVIEWS = TableSpec(
    name="label_reviews",
    key=("trace_id", "t", "target", "origin", "reviewer", "revision"),
    schema=pa.schema(
        [
            *((name, pa.string()) for name in ("trace_id", "target", "origin", "reviewer", "note")),
            *((name, pa.int64()) for name in ("t", "revision")),
            *((name, pa.bool_()) for name in ("value", "agree")),
            ("created_at", pa.timestamp("us", tz="UTC")),
        ]
    ),
    reviewers_write=True,
)


@dataclass(frozen=True)
class LabelReview:
    """One revision of one person's review of one label."""

    trace_id: str
    t: int
    target: str
    origin: str
    value: bool
    """What the label said."""
    reviewer: str
    agree: bool
    note: str = ""
    revision: int = 0
    created_at: datetime | None = None

    @property
    def place(self) -> tuple[str, int, str, str]:
        return self.trace_id, self.t, self.target, self.origin


def sample(labels: Iterable[tuple[str, Label]], size: int, seed: int = 0) -> list[tuple[str, Label]]:
    """At most `size` labels: the four kinds (target, value) in turn, each in the order of a hash."""
    kinds: dict[tuple[str, bool], list[tuple[str, Label]]] = {}
    for trace_id, label in labels:
        kinds.setdefault((label.target, label.value), []).append((trace_id, label))
    for found in kinds.values():
        found.sort(key=lambda pair: hashlib.sha256(f"{seed}/{pair[0]}/{pair[1].t}/{pair[1].target}".encode()).digest())
    order = sorted(kinds)
    drawn = [kinds[kind][turn] for turn in range(max(map(len, kinds.values()), default=0)) for kind in order if turn < len(kinds[kind])]
    return drawn[:size]


def save(database: Database, review: LabelReview) -> LabelReview:
    """Add a review, or a revision of one."""
    name = checked_name(review.reviewer, review.note)
    known = [one.revision for one in all_reviews(database) if one.place == review.place and one.reviewer == name]
    row = asdict(review) | {"reviewer": name, "created_at": datetime.now(UTC)}
    return LabelReview(**add_revision(database, LABEL_REVIEWS, row, known))


def all_reviews(database: Database) -> list[LabelReview]:
    rows = database.rows(LABEL_REVIEWS) if database.exists(LABEL_REVIEWS) else []
    return sorted((LabelReview(**row) for row in rows), key=lambda one: (one.place, one.reviewer, one.revision))


def current(database: Database) -> list[LabelReview]:
    """The newest revision of every review."""
    return list({(one.place, one.reviewer): one for one in all_reviews(database)}.values())


def agreement(reviews: Sequence[LabelReview], labels: Iterable[tuple[str, Label]]) -> list[dict[str, Any]]:
    """By target and value: reviews, agreed, the share and its 95 % Wilson interval; reviews of labels that have changed are left out."""
    now: dict[tuple[str, int, str, str], bool] = {
        (trace_id, label.t, label.target, label.origin): label.value for trace_id, label in labels
    }
    counted = [review for review in reviews if now.get(review.place) == review.value]
    found = []
    for target, value in sorted({(review.target, review.value) for review in counted}):
        own = [review.agree for review in counted if (review.target, review.value) == (target, value)]
        found.append({"target": target, "value": value, "reviews": len(own), "agreed": sum(own)} | _share(sum(own), len(own)))
    total = sum(review.agree for review in counted)
    return [*found, {"target": "all", "value": None, "reviews": len(counted), "agreed": total} | _share(total, len(counted))]


def _share(agreed: int, count: int) -> dict[str, Any]:
    return {"share": agreed / count, "interval": wilson(agreed, count)} if count else {"share": None, "interval": None}
