"""Arrow and Parquet from strangers: bombs, other columns, and offsets that lead nowhere."""

import io
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pamer_lab.errors import InputError
from pamer_lab.opening.tables import MOST_ROWS, read_arrow, read_parquet

SCHEMA = pa.schema([("name", pa.string()), ("steps", pa.list_(pa.int64()))])
ROWS = [{"name": "one", "steps": [1, 2]}, {"name": "two", "steps": []}, {"name": None, "steps": None}]


def arrow(table: pa.Table, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def test_a_plain_table_is_read_as_it_was_written() -> None:
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    assert read_arrow(arrow(table), SCHEMA).to_pylist() == ROWS
    assert read_arrow(arrow(SCHEMA.empty_table()), SCHEMA).num_rows == 0
    names = pa.table({"name": ["a", None]})
    assert read_arrow(arrow(names), SCHEMA, (SCHEMA.field("steps"),)).to_pylist() == [{"name": n, "steps": None} for n in ("a", None)]
    assert read_parquet(parquet(names), ["name", "x"], 1_000_000) == [{"name": "a"}, {"name": None}]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(arrow(pa.Table.from_pylist([{"name": "a" * 5_000_000, "steps": []}], schema=SCHEMA), "zstd"), id="zstd"),
        pytest.param(arrow(pa.Table.from_pylist(ROWS, schema=SCHEMA), "lz4"), id="lz4"),
        pytest.param(arrow(pa.table({"name": pa.array(["a" * 99] * 9).dictionary_encode(), "steps": [[1]] * 9})), id="dictionary"),
        pytest.param(arrow(pa.table({"name": pa.nulls(10**9), "steps": pa.nulls(10**9)})), id="nulls without bytes"),
        pytest.param(arrow(pa.table({"name": ["a"], "steps": [[1]], "more": [1]})), id="another column"),
        pytest.param(arrow(pa.table({"name": ["a"], "steps": [[1.5]]})), id="another type"),
        pytest.param(arrow(pa.table({"name": ["a"] * (MOST_ROWS + 1), "steps": [[]] * (MOST_ROWS + 1)}, schema=SCHEMA)), id="rows"),
        pytest.param(b"ARROW1\0\0" + b"\xff" * 100, id="noise"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_would_expand_or_is_not_the_table_is_refused(body: bytes) -> None:
    with pytest.raises(InputError):
        read_arrow(body, SCHEMA)


def test_a_time_that_no_calendar_has_is_refused() -> None:
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    for number, fine in ((0, True), (2**62, False), (-(2**62), False)):
        body = arrow(pa.table({"at": pa.array([number, None], pa.int64()).cast(schema.field("at").type)}))
        if fine:
            assert read_arrow(body, schema).to_pylist()[1] == {"at": None}
        else:
            with pytest.raises(InputError):
                read_arrow(body, schema)


def test_every_patched_offset_is_refused_or_harmless() -> None:
    """Each aligned number of the file is replaced by large and negative ones; values are looked at, which crashed the process before."""
    body = arrow(pa.Table.from_pylist(ROWS, schema=SCHEMA))
    refused = 0
    for at in range(8, len(body) - 4, 4):
        for number in (b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\x40\0\0\0"):
            try:
                read_arrow(body[:at] + number + body[at + 4 :], SCHEMA).to_pylist()
            except InputError:
                refused += 1
    assert refused > 50


BOMBS = {
    "one value a million times": lambda: pa.table({"name": pa.DictionaryArray.from_arrays(pa.array([0] * 10**6, pa.int32()), ["a" * 9])}),
    "a long text 100,000 times": lambda: pa.table(
        {"name": pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), ["a" * 100_000])}
    ),
    "zeros": lambda: pa.table({"name": ["0" * 60_000_000]}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_parquet_bomb_is_refused_within_its_memory(name: str) -> None:
    body = parquet(BOMBS[name]())
    assert len(body) < 100_000
    code = (
        "import sys, resource\nfrom pamer_lab.opening.tables import read_parquet\nfrom pamer_lab.errors import InputError\n"
        "try:\n    read_parquet(sys.stdin.buffer.read(), ['name'], 50_000_000)\n"
        "except InputError:\n    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=body, capture_output=True, check=True)
    assert 0 < int(done.stdout) < 700_000, "kilobytes of the largest child"


@pytest.mark.parametrize("body", [b"", b"PAR1", b"PAR1" + b"\xff" * 50 + b"PAR1", parquet(pa.table({"name": ["a"]}))[:-20]])
def test_a_damaged_parquet_is_refused(body: bytes) -> None:
    with pytest.raises(InputError):
        read_parquet(body, ["name"], 1_000_000)
