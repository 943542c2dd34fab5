"""The sources of traces, for splits that keep all traces of one repository together.

They come from a table (CSV with the columns `file` and `repository`; `file` is the end of a trace's path, with several parts if names
repeat); without one, a trace's source is the folder of its file.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from pamer_lab.errors import InputError
from pamer_lab.opening import read_text
from pamer_lab.trajectory.values import Trace


def sources_of(traces: Sequence[Trace], table: Path | None = None) -> dict[str, str]:
    """Trace id -> source; `InputError` for a trace that is not in the table."""
    known = read_sources(table) if table is not None else None
    return {trace.trace_id: _source(trace, known, table) for trace in traces}


def read_sources(path: Path) -> dict[tuple[str, ...], str]:
    """The last parts of a file's path -> its repository."""
    try:
        rows = list(csv.DictReader(read_text(path).splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"the table of sources cannot be read ({error})", path=str(path)) from error
    if not rows or not {"file", "repository"} <= rows[0].keys():
        raise InputError("a table of sources needs the columns file and repository", path=str(path))
    return {PurePosixPath(row["file"]).parts: row["repository"] for row in rows}


def _source(trace: Trace, known: Mapping[tuple[str, ...], str] | None, table: Path | None) -> str:
    parts = PurePosixPath(trace.source.path if trace.source else "").parts
    if known is None:
        return parts[-2] if len(parts) > 1 else "unknown"
    for start in range(len(parts)):
        if parts[start:] in known:
            return known[parts[start:]]
    raise InputError(f"{'/'.join(parts[-2:]) or trace.trace_id} is not in the table of sources; add a line for it", path=str(table))
