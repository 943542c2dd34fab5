"""The audit's two tables. Rows are only ever added: a review that is edited becomes a further revision."""

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
"""Whether a form stored a review's steps as it showed them; null in reviews from before forms did, and in those of the library."""
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
