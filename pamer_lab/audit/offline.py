"""Reviews written in a share page, which exports them as one JSON file.

A review that was imported before is skipped, an edited one becomes a new revision with its original time, and a review of an unknown
selection is counted but not stored.
"""

from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from pamer_lab.audit.reviews import ReviewStore
from pamer_lab.audit.tables import SELECTIONS, is_time
from pamer_lab.errors import FormatError, InputError
from pamer_lab.storage import Database, is_in

MOST_REVIEWS = 20_000


class OfflineReview(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One review as the page writes it."""

    audit_id: str
    reviewer: str
    verdict: str
    steps: tuple[int, ...]
    note: str
    created_at: datetime


class OfflineReviews(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    format: Literal["pamer-lab-reviews"]
    version: Literal[1, 2]
    """From 2 on the steps are those that the page showed; the field of the first version showed steps that it did not store."""
    report_id: str
    exported_at: str
    reviews: tuple[OfflineReview, ...]


def import_reviews(database: Database, source: Path, body: bytes) -> dict[str, int]:
    """Add the file's reviews; returns how many were new, and how many are about unknown selections."""
    found = read_reviews(source, body)
    reviews, as_shown = found.reviews, True if found.version > 1 else None
    store = ReviewStore(database)
    named = {review.audit_id for review in reviews}
    known = (
        {row["audit_id"] for row in database.rows(SELECTIONS, where=is_in("audit_id", sorted(named)), columns=["audit_id"])}
        if named
        else set()
    )
    if named and not known:
        raise FormatError("reviews selections that are not in this workspace; import them or replay the same runs first", path=str(source))
    added = 0
    for number, review in enumerate(reviews, 1):
        if review.audit_id not in known:
            continue
        try:
            written = (review.verdict, review.steps, review.note, review.created_at)
            added += store.add(review.audit_id, review.reviewer, *written, as_shown=as_shown)
        except InputError as error:
            raise error.at(path=str(source), where=f"review {number}") from error
    return {"selection": 0, "review": added, "unknown": sum(review.audit_id not in known for review in reviews)}


def read_reviews(source: Path, body: bytes) -> OfflineReviews:
    """The parsed file; refused if the time of a review cannot be used."""
    try:
        found = msgspec.json.decode(body, type=OfflineReviews)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"is not a file of reviews from a share page ({error})", path=str(source)) from error
    if len(found.reviews) > MOST_REVIEWS:
        raise FormatError(f"has {len(found.reviews):,} reviews; the limit is {MOST_REVIEWS:,}", path=str(source))
    for number, review in enumerate(found.reviews, 1):
        if review.created_at.tzinfo is None:
            raise FormatError("its time has no time zone", path=str(source), where=f"review {number}")
        if not is_time(review.created_at):
            raise FormatError("its time is outside the supported years", path=str(source), where=f"review {number}")
    return found
