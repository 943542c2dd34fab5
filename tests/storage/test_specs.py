from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pamer_lab.errors import StorageError
from pamer_lab.storage import Database, TableSpec
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
