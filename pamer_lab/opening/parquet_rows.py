"""`python -m pamer_lab.opening.parquet_rows`: a Parquet file on standard input, its rows as JSON on standard output.

A separate process, because decoding can take any amount of memory, whatever the file declares, and a damaged file may crash it.
"""

import json
import sys
from pathlib import Path
from typing import Any

EXTRA_BYTES = 400_000_000
"""Memory that decoding may take, in addition to the program itself and ten times the size of the file."""
ROWS_AT_ONCE = 64


def main() -> int:
    """Exit code 0 with the rows, 1 with the reason."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    asked = json.loads(sys.stdin.buffer.readline())
    body = sys.stdin.buffer.read()
    _limit_memory(EXTRA_BYTES + 10 * len(body))
    try:
        file = pq.ParquetFile(pa.BufferReader(body), thrift_string_size_limit=10_000_000, thrift_container_size_limit=1_000_000)
        about = file.metadata
        names = [name for name in file.schema_arrow.names if name in asked["columns"]]
        if about.num_rows > asked["rows"]:
            raise ValueError(f"{about.num_rows:,} rows; {asked['rows']:,} is the limit")
        if sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups)) > asked["most"]:
            raise ValueError("too many bytes once unpacked")
        rows: list[dict[str, Any]] = []
        size = 0
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=names, use_threads=False):
            size += batch.nbytes
            if size > asked["most"]:
                raise ValueError("too many bytes once decoded")
            batch.validate(full=True)
            rows += batch.to_pylist()
        answer = json.dumps(rows)
    except (pa.ArrowException, MemoryError, OSError, ValueError, TypeError) as error:
        print(str(error)[:300] or type(error).__name__)
        return 1
    sys.stdout.write(answer)
    return 0


def _limit_memory(extra: int) -> None:
    try:
        import resource
    except ImportError:  # not on this system; the limits of rows and bytes remain
        return
    try:
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (used + extra, used + extra))


if __name__ == "__main__":
    sys.exit(main())
