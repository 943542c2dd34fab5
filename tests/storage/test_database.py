import multiprocessing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.errors import StorageError
from pamer_lab.storage import Database, TableSpec, equals, is_in

SPEC = TableSpec("things", pa.schema([("name", pa.string()), ("value", pa.int64())]), key=("name",))


def test_a_known_key_is_replaced_and_a_new_one_added(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.upsert(SPEC, [{"name": "a", "value": 1}, {"name": "b", "value": 2}])
    database.upsert(SPEC, [{"name": "b", "value": 3}, {"name": "c", "value": 4}])
    assert sorted((row["name"], row["value"]) for row in database.rows(SPEC)) == [("a", 1), ("b", 3), ("c", 4)]
    database.upsert(SPEC, [{"name": "c", "value": 9}], replace=False)
    assert database.rows(SPEC, where=equals("name", "c")) == [{"name": "c", "value": 4}]


@settings(max_examples=60, deadline=None)
@given(value=st.text(max_size=20) | st.sampled_from(["'", "''", "' OR '1'='1", "x'; DROP TABLE things; --", "\\", '"', "%", "\n"]))
def test_no_value_can_break_out_of_a_filter(value: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    database = _shared(tmp_path_factory)
    database.upsert(SPEC, [{"name": value, "value": 7}])
    assert [row["name"] for row in database.rows(SPEC, where=equals("name", value))] == [value]
    assert [row["name"] for row in database.rows(SPEC, where=is_in("name", [value]))] == [value]
    database.delete(SPEC, equals("name", value))
    assert database.rows(SPEC, where=equals("name", value)) == []
    assert database.count(SPEC, equals("name", "guard")) == 1


_DATABASES: dict[str, Database] = {}


def _shared(factory: pytest.TempPathFactory) -> Database:
    if "one" not in _DATABASES:
        _DATABASES["one"] = Database(factory.mktemp("filters"))
        _DATABASES["one"].upsert(SPEC, [{"name": "guard", "value": 0}])
    return _DATABASES["one"]


def test_a_column_name_must_be_a_name() -> None:
    with pytest.raises(StorageError):
        equals("name = '' OR true --", "x")


def test_no_values_match_no_row(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.append(SPEC, [{"name": "a", "value": 1}])
    assert database.rows(SPEC, where=is_in("name", [])) == []


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


def test_older_tables_are_migrated_once_and_newer_ones_refused(tmp_path: Path) -> None:
    Database(tmp_path).append(SPEC, [{"name": "a", "value": 1}])
    ran: list[int] = []

    def add_colour(table: Any) -> None:
        ran.append(1)
        table.add_columns({"colour": "'grey'"})

    newer = TableSpec("things", SPEC.schema.append(pa.field("colour", pa.string())), ("name",), migrations=(add_colour,))
    assert Database(tmp_path).rows(newer) == [{"name": "a", "value": 1, "colour": "grey"}]
    assert Database(tmp_path).count(newer) == 1
    assert ran == [1]
    with pytest.raises(StorageError, match="use the newer program"):
        Database(tmp_path).rows(SPEC)


def test_a_damaged_table_is_a_sentence(tmp_path: Path) -> None:
    Database(tmp_path).append(SPEC, [{"name": "a", "value": 1}])
    for manifest in (tmp_path / "things.lance" / "_versions").iterdir():
        manifest.write_bytes(b"garbage")
    with pytest.raises(StorageError, match="things"):
        Database(tmp_path).rows(SPEC)
