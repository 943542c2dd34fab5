"""Several processes write one key at once: exactly one row comes of it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa

from pamer_lab.bench.crash import PROCESSES
from pamer_lab.storage import Database, TableSpec
from pamer_lab.storage.specs import SCHEMA_NUMBER

SPEC = TableSpec("races", pa.schema([("session", pa.string()), ("number", pa.int64()), ("who", pa.int64())]), key=("session", "number"))
WRITERS, ROUNDS = 3, 15


def insert(uri: str, spec: TableSpec, who: int, barrier: Any, results: Any) -> None:
    """One process: the same new keys as everybody else, at the same moments."""
    database = Database(uri)
    won = []
    for number in range(ROUNDS):
        barrier.wait(60)
        added, _ = database.insert(spec, [{"session": "it's", "number": number, "who": who}])
        won += [number] * added
    results.put(won)


def upsert(uri: str, spec: TableSpec, who: int, barrier: Any, results: Any) -> None:
    database = Database(uri)
    for number in range(ROUNDS):
        barrier.wait(60)
        database.upsert(spec, [{"session": "s", "number": number, "who": who}])
    results.put([])


def race(folder: Path, work: Callable[..., None], spec: TableSpec = SPEC, *, created: bool = False) -> tuple[list[int], Counter[int]]:
    """What each key's writers were told, and how often each key stands in the table."""
    if created:
        Database(folder).table(spec)
    barrier, results = PROCESSES.Barrier(WRITERS), PROCESSES.Queue()
    processes = [PROCESSES.Process(target=work, args=(str(folder), spec, who, barrier, results)) for who in range(WRITERS)]
    for process in processes:
        process.start()
    won = [number for _ in processes for number in results.get(timeout=100)]
    for process in processes:
        process.join(60)
    rows = Database(folder).rows(SPEC)
    return sorted(won), Counter(row["number"] for row in rows)


def test_of_several_processes_that_insert_one_key_exactly_one_wins_and_is_told_so(tmp_path: Path) -> None:
    won, found = race(tmp_path / "lance", insert)
    assert won == list(range(ROUNDS))
    assert found == Counter(range(ROUNDS))


def test_processes_that_upsert_one_key_leave_one_row(tmp_path: Path) -> None:
    _, found = race(tmp_path / "lance", upsert, created=True)
    assert found == Counter(range(ROUNDS))


def test_without_the_primary_key_mark_the_same_race_doubles_rows(tmp_path: Path) -> None:
    """The guard is needed: a table that was created without the mark shows what would happen."""
    bare = SPEC.schema.set(0, pa.field("session", pa.string(), metadata={SCHEMA_NUMBER: "0"}))
    lancedb.connect(tmp_path / "lance").create_table(SPEC.name, schema=bare)
    _, found = race(tmp_path / "lance", insert)
    assert max(found.values()) > 1
