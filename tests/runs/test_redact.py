"""A run file with secrets in it: replaced wherever they stand, still whole, and the file says so."""

import io
import json
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from pamer_lab.audit import AuditStore
from pamer_lab.cli import main
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import check
from pamer_lab.memory.schema import BLOCKS
from pamer_lab.redaction import Scan
from pamer_lab.runs.bundle import REDACTION, pack_runs, unpack_runs
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import Run
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, SMALL, call, make_trace

# Put together at run time: no scanner should find a key in this repository.
KEY = "sk-" + "proj-" + "a1B2" * 10
MAIL = "ada@example.org"


@pytest.fixture
def run(workspace: Workspace) -> Run:
    told = f"The deploy key is {KEY} and Ada is at {MAIL}."
    blocks = [call(n, f"clue {n}", f"{told} Document D{n:04d}: " + " ".join(f"word{n * 7 + k}" for k in range(60))) for n in range(14)]
    return replay(make_trace(blocks), f"pamer+{SMALL}", workspace, ReplayOptions(device="cpu", parts=PARTS))


def _opened(body: bytes) -> tuple[bytes, dict[str, object]]:
    """Everything in the file as bytes, and what it says of its scan."""
    with zipfile.ZipFile(io.BytesIO(body)) as file:
        return b"".join(file.read(name) for name in file.namelist()), json.loads(file.read(REDACTION))


def test_a_replaced_secret_is_nowhere_in_the_file_and_the_file_says_so(workspace: Workspace, run: Run) -> None:
    everything, said = _opened(pack_runs(workspace, [run.run_id], Scan("none")))
    assert KEY.encode() in everything and said["choice"] == "none"
    everything, said = _opened(pack_runs(workspace, [run.run_id], Scan("keys")))
    assert KEY.encode() not in everything and MAIL.encode() in everything and b"[redacted: API key 1]" in everything
    kinds = {(row["kind"], row["redacted"]) for row in said["summary"]}  # type: ignore[attr-defined]
    assert kinds == {("API key", True), ("e-mail address", False)} and KEY not in json.dumps(said)
    assert MAIL.encode() not in _opened(pack_runs(workspace, [run.run_id], Scan("all")))[0]


def test_a_file_in_which_something_was_replaced_opens_whole_elsewhere(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "other")
    unpack_runs(other, pack_runs(workspace, [run.run_id], Scan("all")))
    found = check(other.database)
    assert found.clean and not found.orphans and found.memories == check(workspace.database).memories > 0
    known = {memory.memory_id for memory in MemoryStore(other.database).load(run.run_id).memories}
    there = RunStore(other).run(run.run_id)
    named = {name for turn in there.turns for name in turn.memory_ids}
    assert named and named <= known
    assert {row["memory_id"] for row in AuditStore(other.database).full_rows() for row in row["candidates"]} <= known
    assert [turn.active_tokens for turn in there.turns] == [turn.active_tokens for turn in run.turns]
    assert [turn.states for turn in there.turns] == [turn.states for turn in run.turns]


def test_a_finding_names_the_run_and_the_turn_or_block(workspace: Workspace, run: Run) -> None:
    scan = Scan("keys")
    pack_runs(workspace, [run.run_id], scan)
    places = {finding.place.partition(",")[0].partition(" ")[0] for finding in scan.findings}
    assert {"raw", "memory", "run"} <= places
    assert any(finding.place.startswith(f"run {run.run_id}, ") for finding in scan.findings)


def test_the_command_lists_what_it_finds_and_a_scan_writes_nothing(
    workspace: Workspace, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.runs"
    assert main(["runs", "export", run.run_id, "--scan"]) == 0
    assert re.search(r"^API key: \d+", capsys.readouterr().out, re.MULTILINE) and not file.exists()
    assert main(["runs", "export", run.run_id, "--out", str(file)]) == 0
    assert "API key" in capsys.readouterr().out and KEY.encode() not in _opened(file.read_bytes())[0]
    assert main(["runs", "export", run.run_id, "--out", str(file), "--redact", "none", "--json"]) == 0
    told = capsys.readouterr().out
    assert KEY not in told and json.loads(told)["redact"] == "none"


def test_a_damaged_block_is_not_sent_on_where_nothing_else_is_replaced(workspace: Workspace) -> None:
    blocks = [call(n, f"clue {n}", f"Document D{n:04d}: " + " ".join(f"word{n * 7 + k}" for k in range(60))) for n in range(14)]
    run = replay(make_trace(blocks), f"pamer+{SMALL}", workspace, ReplayOptions(device="cpu", parts=PARTS))
    first = workspace.database.rows(BLOCKS, limit=1)[0]
    workspace.database.upsert(BLOCKS, [first | {"body": f"the key is {KEY}".encode()}])
    assert KEY.encode() not in _opened(pack_runs(workspace, [run.run_id], Scan("keys")))[0]


def test_a_damaged_block_is_not_sent_on(workspace: Workspace, run: Run) -> None:
    with zipfile.ZipFile(io.BytesIO(pack_runs(workspace, [run.run_id], Scan("keys")))) as file:
        blocks = pa.ipc.open_file(file.read("memory_blocks.arrow")).read_all().num_rows
    first = workspace.database.rows(BLOCKS, limit=1)[0]
    workspace.database.upsert(BLOCKS, [first | {"body": b"not what it was"}])
    with zipfile.ZipFile(io.BytesIO(pack_runs(workspace, [run.run_id], Scan("keys")))) as file:
        assert pa.ipc.open_file(file.read("memory_blocks.arrow")).read_all().num_rows == blocks - 1
