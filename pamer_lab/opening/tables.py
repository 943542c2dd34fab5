"""Tables from untrusted Arrow and Parquet files, within a budget of bytes and rows.

Arrow is read message by message: only plain, uncompressed record batches of exactly the expected columns, each validated in full before
a value is read. Parquet hides how far it expands, so it is decoded in a separate process with limits of memory and time.
Invariant: nothing is decoded here that could become more than the budget, and no offset leads out of its buffer.
"""

import json
import os
import struct
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pamer_lab.errors import InputError

ARROW_MAGIC = b"ARROW1\0\0"
MOST_ROWS = 200_000
"""Rows of one table."""
MOST_SECONDS = 30
"""For decoding one Parquet file."""
MOST_BATCHES = 10_000
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_214_400_000_000
"""Range of a date in microseconds, less a day for time zones."""
_COMPRESSION, _HEADER = 3, 2
"""Numbers of fields in Arrow's messages: a record batch's compression, and a message's header."""


def read_arrow(body: bytes, schema: pa.Schema, missing: tuple[pa.Field, ...] = ()) -> pa.Table:
    """The rows of an Arrow file, in the schema's order; columns in `missing` may be absent and are then null.

    The footer is not trusted: the bytes after the magic word are read as the stream that they are.
    """
    if body[: len(ARROW_MAGIC)] != ARROW_MAGIC:
        raise InputError("is not an Arrow file")
    try:
        messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(body)[len(ARROW_MAGIC) :])
        given = pa.ipc.read_schema(messages.read_next_message())
        absent = _check_columns(given, schema, missing)
        batches: list[pa.RecordBatch] = []
        rows = 0
        for message in iter(lambda: _next(messages), None):
            if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
                raise InputError("contains compressed or dictionary-encoded rows; export it again")
            batch = pa.ipc.read_record_batch(message, given)
            rows += batch.num_rows
            if rows > MOST_ROWS or len(batches) >= MOST_BATCHES:
                raise InputError(f"contains more than {MOST_ROWS:,} rows in one table; split it")
            batch.validate(full=True)
            _check_times(batch)
            batches.append(batch)
    except (pa.ArrowException, OSError, struct.error, IndexError, EOFError, StopIteration, UnicodeDecodeError) as error:
        raise InputError(f"is a damaged Arrow file ({str(error)[:200] or type(error).__name__})") from error
    table = pa.Table.from_batches(batches, given)
    for column in absent:
        table = table.append_column(column, pa.nulls(table.num_rows, column.type))
    return table.select(schema.names).cast(schema)


def _check_times(batch: pa.RecordBatch) -> None:
    for column in batch.columns:
        if pa.types.is_timestamp(column.type):
            found = pc.min_max(column.view(pa.int64())).as_py()
            if found["min"] is not None and not EARLIEST <= found["min"] <= found["max"] <= LATEST:
                raise InputError("contains a time outside the years 1 to 9999")


def _next(messages: Any) -> Any:
    """The next message, or None after the last one."""
    try:
        return messages.read_next_message()
    except StopIteration:
        return None


def _check_columns(given: pa.Schema, schema: pa.Schema, missing: tuple[pa.Field, ...]) -> list[pa.Field]:
    absent = [column for column in missing if column.name not in given.names]
    wanted = {column.name: column.type for column in schema if column not in absent}
    if len(given.names) != len(wanted) or {column.name: column.type for column in given} != wanted:
        raise InputError("does not have the columns that this program writes; export the runs again with this version")
    return absent


def _is_compressed(metadata: bytes) -> bool:
    """Whether a record batch names a compression, in the FlatBuffers form that Arrow's messages have."""
    message = struct.unpack_from("<I", metadata, 0)[0]
    at = _field(metadata, message, _HEADER)
    batch = at + struct.unpack_from("<I", metadata, at)[0]
    return _field(metadata, batch, _COMPRESSION) != 0


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a FlatBuffers table is; 0 where it is absent."""
    directory = table - struct.unpack_from("<i", data, table)[0]
    if directory < 0 or 4 + 2 * number >= struct.unpack_from("<H", data, directory)[0]:
        return 0
    offset = struct.unpack_from("<H", data, directory + 4 + 2 * number)[0]
    return table + offset if offset else 0


def read_parquet(body: bytes, columns: list[str], most: int) -> list[dict[str, Any]]:
    """The rows of a Parquet file of text columns; at most `most` bytes of text."""
    asked = json.dumps({"columns": columns, "most": most, "rows": MOST_ROWS}).encode() + b"\n"
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pamer_lab.opening.parquet_rows"],
            input=asked + body,
            capture_output=True,
            timeout=MOST_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"took more than {MOST_SECONDS} s to decode (a bomb?); save it as CSV or JSONL") from error
    if done.returncode != 0:
        why = done.stdout.decode("utf-8", "replace")[-300:].strip()
        raise InputError(f"cannot be decoded within the limits ({why or f'exit code {done.returncode}'})")
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows
