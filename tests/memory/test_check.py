from datetime import timedelta
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import check, repair
from pamer_lab.memory.schema import BLOCKS, MEMORIES
from pamer_lab.storage import Database, equals
from pamer_lab.workspace import Workspace
from tests.memory.test_store import draft


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Two sessions with three memories."""
    database = Database(tmp_path / "workspace" / "lance")
    store = MemoryStore(database)
    store.commit(*draft("s", "a", "b"), store.load("s"))
    store.commit(*draft("s", "c", step=2), store.load("s"))
    store.commit(*draft("t", "a"), store.load("t"))
    return database


def test_a_sound_store_is_clean(database: Database) -> None:
    findings = check(database)
    assert findings.clean and (findings.memories, findings.blocks, findings.orphans) == (3, 3, [])


def test_an_orphan_is_found_and_removed_only_once_it_is_old(database: Database) -> None:
    _, raw = draft("s", "never stored")
    row = database.rows(BLOCKS)[0] | {"raw_hash": raw[0].raw_hash, "body": raw[0].body}
    database.insert(BLOCKS, [row])
    assert check(database).orphans == [raw[0].raw_hash] and check(database).clean
    repair(database)
    assert check(database).orphans == [raw[0].raw_hash]
    assert "deleted 1 raw" in repair(database, orphan_age=timedelta(0)).repaired[0]
    assert check(database).orphans == [] and database.count(BLOCKS) == 3


def test_a_missing_block_is_found_and_repair_deletes_only_the_memories_that_name_it(database: Database) -> None:
    name = draft("s", "c")[1][0].raw_hash
    database.delete(BLOCKS, equals("raw_hash", name))
    findings = check(database)
    assert len(findings.missing) == 1 and findings.missing[0].endswith(name) and not findings.clean
    repair(database)
    assert check(database).clean and MemoryStore(database).sessions() == {"s": 1, "t": 1}


def test_a_changed_block_is_found_and_every_memory_that_names_it_goes(database: Database) -> None:
    name = draft("s", "a")[1][0].raw_hash
    database.upsert(BLOCKS, [database.rows(BLOCKS, where=equals("raw_hash", name))[0] | {"body": b"[]"}])
    findings = check(database)
    assert findings.mismatched == [name] and not findings.clean
    repair(database)
    assert check(database).clean and MemoryStore(database).sessions() == {"s": 1}


def test_a_changed_and_a_doubled_memory_are_found_and_deleted(database: Database) -> None:
    rows = {(row["session_id"], row["sequence"]): row for row in database.rows(MEMORIES)}
    database.upsert(MEMORIES, [rows["t", 0] | {"summary": "another story"}])
    database.append(MEMORIES, [rows["s", 0]])
    findings = check(database)
    assert findings.mismatched == [rows["t", 0]["memory_id"]] and findings.duplicates == [rows["s", 0]["memory_id"]]
    repair(database)
    assert check(database).clean and MemoryStore(database).sessions() == {"s": 1}


@pytest.mark.parametrize("newest_only", [True, False])
def test_a_table_that_cannot_be_read_goes_back_or_is_set_aside(database: Database, newest_only: bool) -> None:
    folder = Path(database.uri) / "memories.lance" / "_versions"
    for manifest in sorted(folder.glob("*.manifest"))[: 1 if newest_only else None]:
        manifest.write_bytes(b"torn")
    fresh = Database(database.uri)
    assert check(fresh).unreadable == ["memories"] and not check(fresh).clean
    said = repair(fresh).repaired[0]
    after = Database(database.uri)
    assert check(after).clean and ("broken-0" in said) == (not newest_only)
    assert MemoryStore(after).sessions() == ({"s": 2} if newest_only else {})
    store = MemoryStore(after)
    store.commit(*draft("t", "z"), store.load("t"))
    assert store.sessions()["t"] == 1


def test_the_command_says_what_it_found_and_exits_with_one_until_it_is_repaired(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAMER_LAB_HOME", str(Path(database.uri).parent))
    assert main(["memory", "check"]) == 0 and "3 memories" in capsys.readouterr().out
    database.delete(BLOCKS, equals("raw_hash", draft("s", "c")[1][0].raw_hash))
    assert main(["memory", "check"]) == 1 and "missing: 1" in capsys.readouterr().out
    assert main(["memory", "check", "--repair", "--json"]) == 0
    assert '"missing":["m0' in capsys.readouterr().out
    assert main(["memory", "check"]) == 0


def test_a_workspace_without_memory_is_clean_and_stays_untouched(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "check", "--json"]) == 0
    assert '"orphans":[]' in capsys.readouterr().out and not workspace.path.exists()
