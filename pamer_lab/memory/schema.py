"""The memory's two tables, and how rows become records.

`memory_blocks`: raw blocks by the hash of their bytes, shared by all sessions. `memories`: one row per memory, keyed by
session and number. Schema changes are appended to `migrations`, numbered by their place, and applied when a table is
opened; a row's checksum covers the fields of schema 0.
"""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pamer_lab.memory.records import CoveredBlock, Memory, RawBlock, Vector
from pamer_lab.storage import TableSpec

BLOCKS = TableSpec(
    name="memory_blocks",
    key=("raw_hash",),
    schema=pa.schema([("raw_hash", pa.string()), ("body", pa.large_binary()), ("written_at", pa.timestamp("us", tz="UTC"))]),
)
STEP = pa.struct(
    [("step", pa.int64()), ("block_id", pa.string()), ("raw_hash", pa.string()), ("detail", pa.string()), ("tokens", pa.int64())]
)
MEMORIES = TableSpec(
    name="memories",
    key=("session_id", "sequence"),
    schema=pa.schema(
        [
            ("session_id", pa.string()),
            ("sequence", pa.int64()),
            ("memory_id", pa.string()),
            ("summary", pa.string()),
            ("vector", pa.list_(pa.float32())),
            ("blocks", pa.list_(STEP)),
            ("summary_tokens", pa.int64()),
            ("tokenizer", pa.string()),
            ("summary_model", pa.string()),
            ("embedding_model", pa.string()),
            ("created_at", pa.timestamp("us", tz="UTC")),
            ("checksum", pa.string()),
        ]
    ),
)
PLAIN_COLUMNS = [name for name in MEMORIES.schema.names if name != "vector"]


def memory_row(memory: Memory) -> dict[str, Any]:
    """The stored form of a memory."""
    row: dict[str, Any] = {name: getattr(memory, name) for name in PLAIN_COLUMNS if name != "blocks"}
    row["blocks"] = [{name: getattr(block, name) for name in STEP.names} for block in memory.blocks]
    row["vector"] = memory.vector
    return row


def block_row(block: RawBlock, written_at: datetime) -> dict[str, Any]:
    return {"raw_hash": block.raw_hash, "body": block.body, "written_at": written_at}


def memories_of(table: pa.Table) -> list[Memory]:
    """Memories from rows of `MEMORIES`, by session and number; a damaged row still becomes a record, with its faults."""
    rows = table.select(PLAIN_COLUMNS).to_pylist()
    found = [_memory(row, vector) for row, vector in zip(rows, _vectors(table), strict=True)]
    return sorted(found, key=lambda memory: (memory.session_id, memory.sequence, memory.memory_id))


def _memory(row: dict[str, Any], vector: Vector) -> Memory:
    blocks = tuple(
        CoveredBlock(
            step=_number(item.get("step"), -1),
            block_id=item.get("block_id") or "",
            raw_hash=item.get("raw_hash") or "",
            detail=item.get("detail") or "",
            tokens=_number(item.get("tokens"), 0),
        )
        for item in row["blocks"] or []
        if item is not None
    )
    texts = ("memory_id", "session_id", "summary", "tokenizer", "summary_model", "embedding_model", "checksum")
    return Memory(
        sequence=_number(row["sequence"], -1),
        vector=vector,
        blocks=blocks,
        summary_tokens=_number(row["summary_tokens"], 0),
        created_at=row["created_at"] or datetime.fromtimestamp(0, UTC),
        **{name: row[name] or "" for name in texts},
    )


def _vectors(table: pa.Table) -> list[Vector]:
    """One float32 array per row, as views of one buffer; a missing vector is an empty one."""
    column = table.column("vector").combine_chunks()
    values = column.values.to_numpy(zero_copy_only=False).astype(np.float32, copy=False) if len(column) else np.zeros(0, np.float32)
    offsets = column.offsets.to_numpy() if len(column) else np.zeros(1, np.int64)
    return [values[start:end] for start, end in pairwise(offsets)]


def _number(value: Any, missing: int) -> int:
    return missing if value is None else int(value)
