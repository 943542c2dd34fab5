import multiprocessing
from pathlib import Path

import pyarrow as pa
import pytest

from pamer_lab.errors import StorageError
from pamer_lab.storage import Database, TableSpec, equals

SPEC = TableSpec("things", pa.schema([("name", pa.string()), ("value", pa.int64())]), key=("name",))


def test_a_known_key_is_replaced_and_a_new_one_added(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.upsert(SPEC, [{"name": "a", "value": 1}, {"name": "b", "value": 2}])
    database.upsert(SPEC, [{"name": "b", "value": 3}, {"name": "c", "value": 4}])
    assert sorted((row["name"], row["value"]) for row in database.rows(SPEC)) == [("a", 1), ("b", 3), ("c", 4)]
    database.upsert(SPEC, [{"name": "c", "value": 9}], replace=False)
    assert database.rows(SPEC, where=equals("name", "c")) == [{"name": "c", "value": 4}]


def test_reading_a_table_that_is_not_there_finds_nothing_and_makes_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path)
    assert database.page(SPEC, ["name"], 0, 5) == database.rows(SPEC) == [] and database.count(SPEC) == 0
    assert not database.exists(SPEC)


def _write_twenty(folder: Path, worker: int) -> None:
    database = Database(folder)
    for number in range(20):
        database.upsert(SPEC, [{"name": f"{worker}-{number}", "value": number}])


def test_two_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    Database(tmp_path).table(SPEC)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_twenty, args=(tmp_path, worker)) for worker in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert Database(tmp_path).count(SPEC) == 40


def test_a_damaged_table_is_a_sentence(tmp_path: Path) -> None:
    Database(tmp_path).append(SPEC, [{"name": "a", "value": 1}])
    for manifest in (tmp_path / "things.lance" / "_versions").iterdir():
        manifest.write_bytes(b"garbage")
    with pytest.raises(StorageError, match="things"):
        Database(tmp_path).rows(SPEC)
