"""The audit's two tables, and the limits of imported rows.

Rows are never changed: an edited review becomes a new revision. Pages loop up to a row's turn and steps, so both are checked on
import.
"""

from collections.abc import Iterable, Mapping
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Any

import pyarrow as pa

from pamer_lab.storage import TableSpec
from pamer_lab.storage.specs import Migration

CANDIDATE = pa.struct([("memory_id", pa.string()), ("step", pa.int64()), ("score", pa.float64()), ("rank", pa.int64())])


def _adding(columns: tuple[pa.Field, ...]) -> Migration:
    """Schema 1: these columns, null in older rows."""

    def add(table: Any) -> None:
        new = [column for column in columns if column.name not in table.schema.names]
        if new:
            table.add_columns(pa.schema(new))

    return add


RESTORED = (pa.field("restored_tokens", pa.int64()), pa.field("restored_in_part", pa.list_(pa.int64())))
AS_SHOWN = (pa.field("as_shown", pa.bool_()),)
"""Whether a form stored a review's steps as it showed them; null in older reviews, and in those made with the library."""
SELECTIONS = TableSpec(
    name="selections",
    key=("audit_id",),
    schema=pa.schema(
        [
            ("audit_id", pa.string()),
            ("run_id", pa.string()),
            ("trace_id", pa.string()),
            ("session_id", pa.string()),
            ("turn", pa.int64()),
            ("table_version", pa.int64()),
            ("created_at", pa.timestamp("us", tz="UTC")),
            ("query", pa.string()),
            ("router", pa.string()),
            ("agent", pa.string()),
            ("answer", pa.string()),
            ("outcome", pa.string()),
            ("reason", pa.string()),
            ("candidates", pa.list_(CANDIDATE)),
            ("summary_ids", pa.list_(pa.string())),
            ("steps", pa.list_(pa.int64())),
            ("goal", pa.string()),
            ("near_misses", pa.list_(CANDIDATE)),
            ("cache", pa.string()),
            ("cited_steps", pa.list_(pa.int64())),
            ("chosen_tokens", pa.int64()),
            ("covered_tokens", pa.int64()),
            *RESTORED,
        ]
    ),
    migrations=(_adding(RESTORED),),
)
REVIEWS = TableSpec(
    name="reviews",
    key=("audit_id", "reviewer", "revision"),
    schema=pa.schema(
        [
            ("audit_id", pa.string()),
            ("reviewer", pa.string()),
            ("revision", pa.int64()),
            ("verdict", pa.string()),
            ("steps", pa.list_(pa.int64())),
            ("note", pa.string()),
            ("created_at", pa.timestamp("us", tz="UTC")),
            *AS_SHOWN,
        ]
    ),
    migrations=(_adding(AS_SHOWN),),
    reviewers_write=True,
)

MOST_STEP = 1_000_000
"""Turns and steps of one trace; the reader takes fewer."""
MOST_TOKENS = 10**9
"""Maximum tokens of one request, message or step."""
NOTE_CHARACTERS = 10_000
NAME_CHARACTERS = 200
"""Maximum length of a reviewer's name."""
MOST_STEPS_NAMED = 100_000
"""Steps in one list of a row."""


def are_steps(steps: Iterable[Any], most: int = MOST_STEP) -> bool:
    """Whether these are step numbers up to `most`, and not too many."""
    listed = list(steps)
    return len(listed) <= MOST_STEPS_NAMED and all(isinstance(step, int) and 0 <= step <= most for step in listed)


def is_time(value: datetime | None) -> bool:
    """Whether a row's time can be shown in every time zone; the first and the last year cannot."""
    return value is None or MINYEAR < value.year < MAXYEAR


def check_selection(row: Mapping[str, Any]) -> None:
    """Raise `ValueError` for numbers that no trace has."""
    turn = row["turn"]
    if not isinstance(turn, int) or not 0 <= turn <= MOST_STEP:
        raise ValueError(f"turn {str(turn)[:40]} is not between 0 and {MOST_STEP:,}")
    ranked = [candidate for name in ("candidates", "near_misses") for candidate in row[name] or ()]
    named = [step for name in ("steps", "cited_steps", "restored_in_part") for step in row[name] or ()]
    if not are_steps([*named, *(candidate["step"] for candidate in ranked if candidate is not None)]):
        raise ValueError(f"it names steps that are not between 0 and {MOST_STEP:,}, or more than {MOST_STEPS_NAMED:,}")
    for name in ("chosen_tokens", "covered_tokens", "restored_tokens"):
        if not 0 <= (row[name] or 0) <= MOST_TOKENS:
            raise ValueError(f"{name} is not a count")
    if not is_time(row["created_at"]):
        raise ValueError("its time is outside the supported years")


def check_review(row: Mapping[str, Any]) -> None:
    """Raise `ValueError` for numbers or texts that no review has."""
    if not are_steps(row["steps"] or ()) or not are_steps([row["revision"]]):
        raise ValueError(f"its steps and revision must be between 0 and {MOST_STEP:,}")
    if len(row["note"] or "") > NOTE_CHARACTERS:
        raise ValueError(f"the note is longer than {NOTE_CHARACTERS:,} characters")
    if len(row["reviewer"] or "") > NAME_CHARACTERS:
        raise ValueError(f"the reviewer's name is longer than {NAME_CHARACTERS} characters")
    if not is_time(row["created_at"]):
        raise ValueError("its time is outside the supported years")
