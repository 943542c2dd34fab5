from pathlib import Path

import pytest

from pamer_lab.errors import StorageError
from pamer_lab.storage import Database
from tests.storage.test_database import SPEC


def _stored(folder: Path) -> Database:
    database = Database(folder)
    database.append(SPEC, [{"name": "a", "value": 1}])
    database.append(SPEC, [{"name": "b", "value": 2}])
    return database


def test_a_table_goes_back_to_its_newest_version_that_reads(tmp_path: Path) -> None:
    database = _stored(tmp_path)
    newest = min((tmp_path / "things.lance" / "_versions").glob("*.manifest"))
    newest.write_bytes(b"garbage")
    assert repr(SPEC.name) in database.recover(SPEC)
    assert [row["name"] for row in Database(tmp_path).rows(SPEC)] == ["a"]
    assert newest.with_suffix(".broken").read_bytes() == b"garbage"


def test_a_table_without_a_readable_version_is_set_aside(tmp_path: Path) -> None:
    database = _stored(tmp_path)
    for manifest in (tmp_path / "things.lance" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"garbage")
    assert "things.broken-0" in database.recover(SPEC)
    assert database.rows(SPEC) == [] and (tmp_path / "things.broken-0").is_dir()


def test_a_table_that_is_not_there_cannot_be_recovered(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="things"):
        Database(tmp_path).recover(SPEC)
