from typing import Any

import pytest
from msgspec.structs import replace

from pamer_lab.audit import AuditStore
from pamer_lab.audit.provenance import Provenance
from pamer_lab.errors import StorageError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.schema import BLOCKS
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.storage import equals
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, long_trace

TRACE = long_trace(18, trace_id="t-audit")


@pytest.fixture
def case(workspace: Workspace) -> tuple[MemoryStore, dict[str, Any]]:
    """A PaMER+ run and its first selection that chose something."""
    run = replay(TRACE, f"pamer+{SMALL}", workspace, ReplayOptions(device="cpu", parts=PARTS))
    rows = AuditStore(workspace.database).rows(run_id=run.run_id)
    return MemoryStore(workspace.database), next(row for row in rows if row["near_misses"])


def looked_up(store: MemoryStore, row: dict[str, Any], trace: Trace | None = TRACE) -> Provenance:
    return Provenance(store.load(row["session_id"]), store, trace)


def test_a_step_is_called_equal_when_archive_and_upload_have_the_same_bytes(case: tuple[MemoryStore, dict[str, Any]]) -> None:
    store, row = case
    number = row["near_misses"][0]["step"]
    step = looked_up(store, row).step(number)
    assert step.check == "equal" and step.raw_hash == step.trace_hash != ""
    assert f"clue number {number}" in step.text and f"Document D{number:04d}" in step.text
    assert step.detail == looked_up(store, row).details[number] and step.tokens > 0


def test_a_changed_upload_a_missing_trace_and_an_unknown_step_are_told_apart(case: tuple[MemoryStore, dict[str, Any]]) -> None:
    store, row = case
    number = row["near_misses"][0]["step"]
    changed = tuple(
        replace(message, content=message.content.replace(f"D{number:04d}", "D9999")) if message.role == "tool" else message
        for message in TRACE.messages
    )
    edited = looked_up(store, row, replace(TRACE, messages=changed)).step(number)
    assert edited.check == "differs" and f"D{number:04d}" in edited.text and edited.trace_hash != edited.raw_hash
    assert looked_up(store, row, None).step(number).check == "no trace"
    unknown = looked_up(store, row).step(17)
    assert unknown.check == "unknown step" and "clue number 17" in unknown.text
    assert looked_up(store, row).step(999).text == ""


def test_a_block_that_is_missing_or_damaged_in_the_archive_is_not_called_equal(case: tuple[MemoryStore, dict[str, Any]]) -> None:
    store, row = case
    number = row["near_misses"][0]["step"]
    known = looked_up(store, row)
    name = known.step(number).raw_hash
    stored = store.database.rows(BLOCKS, where=equals("raw_hash", name))[0]
    store.database.upsert(BLOCKS, [stored | {"body": stored["body"].replace(b"clue", b"glue")}])
    assert known.step(number).check == "damaged"
    store.database.delete(BLOCKS, equals("raw_hash", name))
    gone = known.step(number)
    assert gone.check == "not archived" and f"clue number {number}" in gone.text


def test_a_fault_whose_message_says_missing_does_not_make_an_archived_block_missing(
    case: tuple[MemoryStore, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, row = case
    known = looked_up(store, row)

    def fault(*_: object) -> None:
        raise StorageError("a data file is missing")

    monkeypatch.setattr(MemoryStore, "raw_blocks", fault)
    assert known.step(row["near_misses"][0]["step"]).check == "damaged"
