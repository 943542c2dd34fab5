import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from pamer_lab.audit import AuditStore
from pamer_lab.cli import main
from pamer_lab.errors import FormatError, InputError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import check
from pamer_lab.redaction import Scan
from pamer_lab.runs.bundle import pack_runs, unpack_runs
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.samples import SAMPLE_RUNS, import_sample_runs, is_sample, sample_runs
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import Run
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo
from tests.runs.making import PARTS, SMALL, long_trace


@pytest.fixture
def run(workspace: Workspace) -> Run:
    return replay(long_trace(14), f"pamer+{SMALL}", workspace, ReplayOptions(device="cpu", parts=PARTS))


def test_a_run_comes_back_whole_with_its_memories_and_selections_and_only_once(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    body, other = pack_runs(workspace, [run.run_id], Scan("keys")), Workspace(tmp_path / "other")
    assert unpack_runs(other, body) == [run.run_id] == unpack_runs(other, body)
    assert RunStore(other).run(run.run_id) == RunStore(workspace).run(run.run_id)
    assert AuditStore(other.database).full_rows() == AuditStore(workspace.database).full_rows() != []
    assert MemoryStore(other.database).load(run.run_id) == MemoryStore(workspace.database).load(run.run_id)
    found = check(other.database)
    assert found.clean and not found.orphans and found.memories
    assert pack_runs(other, [run.run_id], Scan("keys")) == body


def test_a_file_of_another_form_adds_nothing_and_is_answered_in_a_sentence(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    other = Workspace(tmp_path / "other")
    whole = zipfile.ZipFile(io.BytesIO(pack_runs(workspace, [run.run_id], Scan("keys"))))
    mixed = io.BytesIO()
    with zipfile.ZipFile(mixed, "w") as file:
        for name in whole.namelist():
            file.writestr(name, whole.read("replay_texts.arrow" if name == "replay_runs.arrow" else name))
    for body in (b"no zip", b"", mixed.getvalue()):
        with pytest.raises(FormatError):
            unpack_runs(other, body, "given.runs")
    assert RunStore(other).heads() == [] and AuditStore(other.database).rows() == []


def test_a_file_from_before_restored_tokens_were_kept_still_opens(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    whole = zipfile.ZipFile(io.BytesIO(pack_runs(workspace, [run.run_id], Scan("keys"))))
    older, sink = io.BytesIO(), io.BytesIO()
    table = pa.ipc.open_file(whole.read("selections.arrow")).read_all().drop_columns(["restored_tokens", "restored_in_part"])
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with zipfile.ZipFile(older, "w") as file:
        for name in whole.namelist():
            file.writestr(name, sink.getvalue() if name == "selections.arrow" else whole.read(name))
    other = Workspace(tmp_path / "other")
    assert unpack_runs(other, older.getvalue()) == [run.run_id]
    assert {row["restored_tokens"] for row in AuditStore(other.database).rows()} == {None}
    assert RunStore(other).run(run.run_id) == RunStore(workspace).run(run.run_id)


def test_an_unknown_run_is_answered_with_what_to_do(workspace: Workspace, run: Run) -> None:
    with pytest.raises(InputError, match="pamer-lab replay"):
        pack_runs(workspace, [run.run_id, "r-none"], Scan("keys"))


def test_the_command_writes_lists_and_reads_runs(
    workspace: Workspace, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "one.runs")
    assert main(["runs", "export", run.run_id, "--out", file]) == 0
    monkeypatch.setenv("PAMER_LAB_HOME", str(tmp_path / "other"))
    assert main(["runs", "import", file]) == 0 and main(["runs", "list"]) == 0
    assert capsys.readouterr().out.count(run.run_id) == 3
    assert main(["runs", "export"]) == 2 and main(["runs", "import", str(tmp_path / "none.runs")]) == 2


def test_the_recorded_runs_belong_to_the_demo_traces_and_open_here(workspace: Workspace) -> None:
    import_demo(workspace)
    added = import_sample_runs(workspace)
    assert set(added) == set(sample_runs()), f"record them again; how is in {SAMPLE_RUNS.parent / 'README.md'}"
    store = RunStore(workspace)
    for name in added:
        found = store.run(name)
        assert found.head.demo and found.head.status == "done" and len(found.turns) == found.head.turns
        assert is_sample(found.head) and not is_sample(replace(found.head, started="2026-11-19T04:00:00Z")), "replayed here"
    assert check(workspace.database).clean
    assert import_sample_runs(workspace) == []


def test_recorded_runs_of_traces_that_are_not_here_add_nothing(workspace: Workspace) -> None:
    assert import_sample_runs(workspace) == [] and RunStore(workspace).heads() == []
