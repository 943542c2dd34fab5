"""Runs as one file: everything a workspace stores about them, so that they can be viewed elsewhere without recomputing.

A zip with one Arrow file per table (runs, turns, texts, memories, raw blocks, selections), and `redaction.json` with the result of the
secret scan. The traces are not included; viewing the texts needs the same trace.
Invariant: existing rows never change, a run is listed only after everything it refers to was written, and an invalid file (`validate`)
adds nothing.
"""

import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from pamer_lab.audit.tables import RESTORED, SELECTIONS
from pamer_lab.errors import FormatError, InputError
from pamer_lab.memory.schema import BLOCKS, MEMORIES, memories_of
from pamer_lab.opening import read_file
from pamer_lab.opening.tables import read_arrow
from pamer_lab.redaction import Scan, statement
from pamer_lab.runs.redact import scanned
from pamer_lab.runs.turn_rows import TEXTS, TURNS
from pamer_lab.runs.validate import admit
from pamer_lab.storage import Database, TableSpec, is_in
from pamer_lab.trajectory.unpacking import CENTRAL_ENTRY, FAULTS, METHODS
from pamer_lab.workspace import RUNS, Workspace

ORDER: tuple[tuple[TableSpec, str], ...] = (
    (BLOCKS, ""),
    (MEMORIES, "session_id"),
    (SELECTIONS, "run_id"),
    (TEXTS, "run_id"),
    (TURNS, "run_id"),
    (RUNS, "run_id"),
)
"""Tables in the order they are written, with the column that names the run; raw blocks are found through the memories."""
ADDED: dict[str, tuple[pa.Field, ...]] = {SELECTIONS.name: RESTORED}
"""Columns that migrations added to a table; files written before lack them."""
LARGEST = 512 * 1024 * 1024
"""Bytes of a file, and of all its tables together; a larger one is refused."""
FREE_BYTES, MOST_EXPANSION = 64 * 1024 * 1024, 20
"""Bytes that the tables of any file may have, and how many more for each byte of the file."""
MOST_MEMBERS = 1_000
REDACTION = "redaction.json"
DATE = (2026, 1, 1, 0, 0, 0)
"""A zip holds dates; one date for all, so that the same runs give the same bytes."""


def pack_runs(workspace: Workspace, run_ids: Sequence[str], scan: Scan) -> bytes:
    """The file's bytes, after the scan; the error for an unknown run says what to do."""
    database = workspace.database
    known = set(_table(database, RUNS, "run_id", run_ids)["run_id"].to_pylist())
    for name in run_ids:
        if name not in known:
            raise InputError(f"run {name!r} is not in this workspace; `pamer-lab replay` creates runs and prints their ids")
    found = {spec.name: _table(database, spec, column, run_ids) if column else _blocks(database, run_ids) for spec, column in ORDER}
    tables = scanned(found, {spec.name: spec.key for spec, _ in ORDER}, scan)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, rows in tables.items():
            file.writestr(zipfile.ZipInfo(f"{name}.arrow", DATE), _bytes(rows), zipfile.ZIP_DEFLATED)
        said = msgspec.json.format(msgspec.json.encode(statement(scan)), indent=1)
        file.writestr(zipfile.ZipInfo(REDACTION, DATE), said, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _table(database: Database, spec: TableSpec, column: str, values: Iterable[str]) -> pa.Table:
    if not database.exists(spec):
        return spec.schema.empty_table()
    table = database.arrow(spec, where=is_in(column, values))
    return table.sort_by([(name, "ascending") for name in spec.key]).select(spec.schema.names).cast(spec.schema)


def _blocks(database: Database, run_ids: Sequence[str]) -> pa.Table:
    memories = memories_of(_table(database, MEMORIES, "session_id", run_ids)) if database.exists(MEMORIES) else []
    return _table(database, BLOCKS, "raw_hash", sorted({block.raw_hash for memory in memories for block in memory.blocks}))


def _bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def unpack_runs(workspace: Workspace, body: bytes, path: str = "") -> list[str]:
    """Add a file's runs to a workspace; returns the ids of all runs in it."""
    tables = checked_tables(body, path)
    database = workspace.database
    for spec, _ in ORDER:
        if tables[spec.name].num_rows:
            database.insert(spec, tables[spec.name])
    names: list[str] = tables[RUNS.name]["run_id"].to_pylist()
    return names


def checked_tables(body: bytes, path: str = "") -> dict[str, pa.Table]:
    """The tables of a file whose every row was validated."""
    tables = _read(body, path)
    admit(tables, path)
    return tables


def run_starts(body: bytes, path: str = "") -> dict[str, str]:
    """The runs that a file holds, and when each of them started."""
    rows = _read(body, path)[RUNS.name]
    return dict(zip(rows["run_id"].to_pylist(), rows["started"].to_pylist(), strict=True))


def trace_ids(body: bytes, path: str = "") -> set[str]:
    """The traces that a file's runs were made of."""
    return set(_read(body, path)[RUNS.name]["trace_id"].to_pylist())


def _read(body: bytes, path: str) -> dict[str, pa.Table]:
    try:
        if body.count(CENTRAL_ENTRY) > MOST_MEMBERS:
            raise FormatError("is not a file of runs: it has too many members", path=path)
        with zipfile.ZipFile(io.BytesIO(body)) as file:
            most = min(LARGEST, FREE_BYTES + MOST_EXPANSION * len(body))
            if sum(entry.file_size for entry in file.infolist()) > most:
                raise FormatError(f"contains more than {most // 2**20} MiB of rows (a bomb?)", path=path)
            return {spec.name: _table_in(file, spec) for spec, _ in ORDER}
    except FormatError:
        raise
    except InputError as error:
        raise FormatError(error.reason, path=path, where=error.where) from error
    except (KeyError, *FAULTS) as error:
        raise FormatError(f"is not a file of runs that `pamer-lab runs export` wrote ({error})", path=path) from error


def _table_in(file: zipfile.ZipFile, spec: TableSpec) -> pa.Table:
    entry = file.getinfo(f"{spec.name}.arrow")
    if entry.compress_type not in METHODS:
        raise InputError("uses an unsupported compression method", where=spec.name)
    try:
        # Files written before a migration lack the columns it added.
        return read_arrow(file.read(entry), spec.schema, ADDED.get(spec.name, ()))
    except InputError as error:
        raise error.at(where=spec.name) from error


def read_bundle(path: str | Path) -> bytes:
    """A file's bytes; an `InputError` says why it cannot be read."""
    try:
        return read_file(path, LARGEST)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=str(path)) from error
