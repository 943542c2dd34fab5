"""Exports selections and reviews to CSV, JSONL or Parquet (by suffix) and imports them; reviews of a share page come as JSON.

One file has both tables: a `table` column says which, and columns of the other stay empty. Its first row says what the secret scan found
and redacted. Lists are JSON text in every format, so that all formats are equivalent and spreadsheets can show them.
Invariant: importing an export gives the same rows, except for redacted text, and never changes existing rows.
"""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pyarrow as pa

from pamer_lab.audit.offline import import_reviews
from pamer_lab.audit.reviews import VERDICTS
from pamer_lab.audit.tables import REVIEWS, SELECTIONS, check_review, check_selection
from pamer_lab.config import ReadLimits
from pamer_lab.controller.router import SelectionOutcome
from pamer_lab.errors import FormatError, InputError
from pamer_lab.opening import parse_json, read_file
from pamer_lab.opening.budget import FREE_BYTES, MOST_EXPANSION
from pamer_lab.opening.tables import MOST_ROWS, read_parquet
from pamer_lab.redaction import Finding, Redaction, Scan, own_scan, sentence
from pamer_lab.spreadsheet import csv_text, plain
from pamer_lab.storage import Database, TableSpec
from pamer_lab.storage.files import write_whole
from pamer_lab.trajectory.unpacking import refuse_many_values
from pamer_lab.workspace import Workspace

FORMATS = (".csv", ".jsonl", ".parquet")
IMPORTED = (*FORMATS, ".json")
"""Endings that can be read; `.json` holds the reviews of a share page."""
TABLES: dict[str, TableSpec] = {"selection": SELECTIONS, "review": REVIEWS}
CLOSED: dict[str, tuple[str, ...]] = {"outcome": get_args(SelectionOutcome), "verdict": VERDICTS}
"""Columns with a fixed set of values; a file with any other is refused."""
COLUMNS = ["table", *dict.fromkeys([*SELECTIONS.schema.names, *REVIEWS.schema.names])]
MOST_COLUMNS = 100
"""Columns of a CSV file: each row has all of them once it is read, even an empty one."""
SCAN = "scan"
"""The `table` of the one row without data, whose note says what the scan for secrets found and replaced."""


def export_audit(database: Database, path: str | Path, scan: Scan) -> int:
    """Write everything to a file; returns the number of rows."""
    target = Path(path)
    body, rows = audit_bytes(database, _format(target), scan)
    write_whole(target, body)
    return rows


def audit_bytes(database: Database, ending: str, scan: Scan) -> tuple[bytes, int]:
    """Everything as the body of a file with this ending, and the number of rows."""
    found = audit_frame(database)
    frame = _scanned(found, scan)
    match ending:
        case ".csv":
            return csv_text(frame).encode(), found.height
        case ".jsonl":
            lines = [{key: value for key, value in row.items() if value is not None} for row in frame.to_dicts()]
            return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode(), found.height
        case _:
            buffer = io.BytesIO()
            frame.write_parquet(buffer)
            return buffer.getvalue(), found.height


def export_beside(folder: str, ending: str, redact: Redaction, out: str) -> list[Finding]:
    """Write a workspace's audit to a folder, as `audit` with this ending; returns what the scan found. Runs in a separate process."""
    scan = own_scan(redact)
    export_audit(Workspace(folder).database, Path(out) / f"audit{ending}", scan)
    return scan.findings


def import_beside(folder: str, name: str, file: str) -> dict[str, int]:
    """Import `file`, the copy of an upload called `name`, into a workspace. Runs in a separate process."""
    return import_bytes(Workspace(folder).database, Path(name), read_file(file, ReadLimits.from_environment().max_bytes))


def audit_frame(database: Database) -> pl.DataFrame:
    """Both tables in one frame of text columns."""
    rows: list[dict[str, str | None]] = []
    for name, spec in TABLES.items():
        for row in database.rows(spec) if database.exists(spec) else []:
            rows.append(dict.fromkeys(COLUMNS) | {"table": name} | {key: _text(value) for key, value in row.items()})
    rows.sort(key=lambda row: tuple(row[key] or "" for key in ("table", "created_at", "audit_id", "reviewer", "revision")))
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String))


def _scanned(frame: pl.DataFrame, scan: Scan) -> pl.DataFrame:
    """The frame with secrets replaced as chosen, after a first row that says so."""
    scan.learn(frame.to_dicts())
    rows = [
        {
            key: scan.clean(value, f"{row['table']} {row['audit_id']}, {key}") if isinstance(value, str) else value
            for key, value in row.items()
        }
        for row in frame.to_dicts()
    ]
    said = {"table": SCAN, "note": f"{sentence(scan.findings)} The scan may miss some."}
    return pl.DataFrame([dict.fromkeys(COLUMNS) | said, *rows], schema=frame.schema)


def import_audit(database: Database, path: str | Path) -> dict[str, int]:
    """Read a file that `export_audit` wrote; returns how many rows of each table were new."""
    source = Path(path)
    _format(source, IMPORTED)
    try:
        body = read_file(source, ReadLimits.from_environment().max_bytes)
    except OSError as error:
        raise FormatError(f"cannot be read ({error.strerror or error})", path=str(source)) from error
    return import_bytes(database, source, body)


def import_bytes(database: Database, source: Path, body: bytes) -> dict[str, int]:
    """The same for a file that is already in memory; `source` is only its name."""
    if _format(source, IMPORTED) == ".json":
        return import_reviews(database, source, body)
    values, unknown = audit_rows(source, body)
    added = {name: database.insert(spec, values[name])[0] if values[name] else 0 for name, spec in TABLES.items()}
    if unknown and not any(added.values()):
        raise FormatError("names no table; export the audit again", path=str(source), where=f"row {unknown}")
    return added


def audit_rows(source: Path, body: bytes) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """The validated rows of each table, and the first row that names none (0: each names one)."""
    rows = _read(source, body)
    if not rows and b"table" not in body:
        raise FormatError("is not an exported audit: it has no `table` column", path=str(source))
    values = {
        name: [_row(spec, row, number, source) for number, row in enumerate(rows, 1) if row.get("table") == name]
        for name, spec in TABLES.items()
    }
    return values, next((number for number, row in enumerate(rows, 1) if row.get("table") not in (SCAN, *TABLES)), 0)


def _read(source: Path, body: bytes) -> list[dict[str, Any]]:
    try:
        match _format(source):
            case ".csv":
                if body.split(b"\n", 1)[0].count(b",") > MOST_COLUMNS:
                    raise ValueError(f"it has more than {MOST_COLUMNS} columns")
                found = _few(pl.read_csv(io.BytesIO(body), infer_schema=False, n_rows=MOST_ROWS + 1).to_dicts())
                return [{name: plain(cell) if cell else cell for name, cell in row.items()} for row in found]
            case ".jsonl":
                refuse_many_values(body, ReadLimits.from_environment())
                rows = _few([parse_json(line) for line in body.decode("utf-8").split("\n") if line.strip()])
                if not all(isinstance(row, dict) for row in rows):
                    raise ValueError("a line is not an object")
                return rows
            case _:
                return read_parquet(body, COLUMNS, FREE_BYTES + MOST_EXPANSION * len(body))
    except (InputError, ValueError, pl.exceptions.PolarsError) as error:
        raise FormatError(f"cannot be read as an exported audit ({error})", path=str(source)) from error


def _few(rows: list[Any]) -> list[Any]:
    if len(rows) > MOST_ROWS:
        raise ValueError(f"it has more than {MOST_ROWS:,} rows; split it")
    return rows


def _row(spec: TableSpec, row: dict[str, Any], number: int, source: Path) -> dict[str, Any]:
    try:
        value = {column.name: _value(column.type, row.get(column.name)) for column in spec.schema}
        pa.RecordBatch.from_pylist([value], schema=spec.schema)  # raises for what the table could not hold
        for name, known in CLOSED.items():
            if name in value and value[name] not in known:
                raise ValueError(f"{name} {str(value[name])[:40]!r}; known: {', '.join(known)}")
        (check_selection if spec is SELECTIONS else check_review)(value)
        return value
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise FormatError(f"has a value of the wrong type ({error})", path=str(source), where=f"row {number}") from error


def _value(kind: pa.DataType, text: str | None) -> Any:
    if text is None:
        return "" if pa.types.is_string(kind) else [] if pa.types.is_list(kind) else None
    if pa.types.is_list(kind):
        return parse_json(text)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(text).astimezone(UTC)
    if pa.types.is_boolean(kind):
        return parse_json(text)
    return int(text) if pa.types.is_integer(kind) else text


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return json.dumps(value, ensure_ascii=False)


def _format(path: Path, known: tuple[str, ...] = FORMATS) -> str:
    if path.suffix.lower() not in known:
        raise InputError(f"use a file with the suffix {' or '.join(known)}, not {path.suffix or 'one without a suffix'}", path=str(path))
    return path.suffix.lower()
