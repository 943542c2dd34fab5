from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pamer_lab.errors import StorageError
from pamer_lab.storage import Database, TableSpec, equals, is_in
from tests.storage.test_database import SPEC


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
    with pytest.raises(StorageError, match="things"):
        Database(tmp_path).rows(SPEC)


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
