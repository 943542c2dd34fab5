"""A run file of a stranger: what it may not say about its runs and turns."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from pamer_lab.audit.exchange import import_bytes
from pamer_lab.audit.tables import SELECTIONS
from pamer_lab.decisions import Item
from pamer_lab.errors import FormatError, InputError
from pamer_lab.redaction import Scan
from pamer_lab.runs.bundle import pack_runs, unpack_runs
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore, run_row
from pamer_lab.runs.turn_rows import TURNS
from pamer_lab.runs.validate import PACKED_BYTES
from pamer_lab.runs.values import Run
from pamer_lab.storage import TableSpec
from pamer_lab.workspace import RUNS, Workspace
from tests.runs.making import PARTS, SMALL, long_trace

EVIL = "x ![y](https://outside.example/b.png)"


@pytest.fixture
def run(workspace: Workspace) -> Run:
    return replay(long_trace(8), f"pamer{SMALL}", workspace, ReplayOptions(device="cpu", parts=PARTS))


def forged(body: bytes, spec: TableSpec, rows: list[dict[str, Any]]) -> bytes:
    """The file with one table's rows replaced."""
    whole, made, sink = zipfile.ZipFile(io.BytesIO(body)), io.BytesIO(), io.BytesIO()
    with pa.ipc.new_file(sink, spec.schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=spec.schema))
    with zipfile.ZipFile(made, "w") as file:
        for name in whole.namelist():
            file.writestr(name, sink.getvalue() if name == f"{spec.name}.arrow" else whole.read(name))
    return made.getvalue()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokenizer", EVIL),
        ("tokens_kind", EVIL),
        ("policy", EVIL),
        ("policy", " pamer"),
        ("profile", EVIL),
        ("started", EVIL),
        ("status", EVIL),
    ],
)
def test_a_run_whose_names_are_none_is_refused(workspace: Workspace, run: Run, tmp_path: Path, field: str, value: str) -> None:
    other = Workspace(tmp_path / "other")
    body = pack_runs(workspace, [run.run_id], Scan("keys"))
    assert unpack_runs(Workspace(tmp_path / "honest"), forged(body, RUNS, [run_row(run.head)])) == [run.run_id]
    with pytest.raises(FormatError, match=run.run_id):
        unpack_runs(other, forged(body, RUNS, [run_row(msgspec.structs.replace(run.head, **{field: value}))]), "given.runs")
    assert RunStore(other).heads() == []


def test_a_finished_run_has_totals_that_are_numbers(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    body = pack_runs(workspace, [run.run_id], Scan("keys"))
    for totals in ({}, run.totals | {"recorded": {"input": EVIL, "output": 1}}, run.totals | {"total": -1}, run.totals | {"total": 10**18}):
        with pytest.raises(FormatError, match=run.run_id):
            unpack_runs(Workspace(tmp_path / "other"), forged(body, RUNS, [run_row(msgspec.structs.replace(run.head, totals=totals))]))


def test_a_row_that_differs_from_its_head_is_refused(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    body = forged(pack_runs(workspace, [run.run_id], Scan("keys")), RUNS, [run_row(run.head) | {"policy": "base"}])
    with pytest.raises(FormatError, match=run.run_id):
        unpack_runs(Workspace(tmp_path / "other"), body)


@pytest.mark.parametrize(
    "change",
    [
        {"action": EVIL},
        {"states": "<b>"},
        {"states": "A"},
        {"votes": [True]},
        {"items": b"\xc1"},
        {"items": msgspec.msgpack.encode([99])},
        {"items": msgspec.msgpack.encode([-1])},
        {"items": msgspec.msgpack.encode([(0, 1)])},
        {"items": msgspec.msgpack.encode([(5, 0)])},
        {"items": msgspec.msgpack.encode([(-(10**9), 0)])},
        {"items": msgspec.msgpack.encode([Item("summary", 3, text="nowhere")])},
        {"spent": msgspec.msgpack.encode("no")},
        {"items": msgspec.msgpack.encode([Item("summary", 3, spans=((0, 10**11),))])},
        {"items": msgspec.msgpack.encode([Item("evidence", 3, in_part=(10**11,))])},
        {"items": msgspec.msgpack.encode([Item("prefix", 10**18)])},
        {"stored": msgspec.msgpack.encode([(5, 10**11)])},
        {"stored": msgspec.msgpack.encode([(-(10**9), 0)])},
        {"restored_steps": [2**31 - 1]},
        {"active_tokens": -1},
        {"raw_tokens": 10**11},
        {"items": b"\x91" * 100_000},
        {"items": bytes(PACKED_BYTES + 1)},
    ],
)
def test_a_turn_that_this_program_could_not_have_written_is_refused(
    workspace: Workspace, run: Run, tmp_path: Path, change: dict[str, Any]
) -> None:
    rows = workspace.database.arrow(TURNS).select(TURNS.schema.names).cast(TURNS.schema).to_pylist()
    body = forged(pack_runs(workspace, [run.run_id], Scan("keys")), TURNS, [rows[0] | change, *rows[1:]])
    with pytest.raises(FormatError):
        unpack_runs(Workspace(tmp_path / "other"), body)


@pytest.mark.parametrize(
    "change", [{"turns": 10**11}, {"trace_turns": -1}, {"incomplete": (10**11,)}, {"block_tokens": (-1,)}, {"block_tokens": (10**18,)}]
)
def test_a_run_with_more_turns_or_tokens_than_any_trace_is_refused(
    workspace: Workspace, run: Run, tmp_path: Path, change: dict[str, Any]
) -> None:
    body = pack_runs(workspace, [run.run_id], Scan("keys"))
    with pytest.raises(FormatError):
        unpack_runs(Workspace(tmp_path / "other"), forged(body, RUNS, [run_row(msgspec.structs.replace(run.head, **change))]))


@pytest.mark.parametrize(
    "change",
    [
        {"turn": 10**11},
        {"turn": -1},
        {"turn": None},
        {"steps": [10**11]},
        {"cited_steps": [-1]},
        {"candidates": [{"memory_id": "m", "step": 10**11, "score": 0.0, "rank": 0}]},
        {"chosen_tokens": -5},
    ],
)
def test_a_selection_beyond_every_trace_is_refused_from_run_and_audit_files(
    workspace: Workspace, run: Run, tmp_path: Path, change: dict[str, Any]
) -> None:
    row = dict.fromkeys(SELECTIONS.schema.names) | {"audit_id": "a", "run_id": run.run_id, "turn": 3, "outcome": "selected"}
    body = pack_runs(workspace, [run.run_id], Scan("keys"))
    honest = Workspace(tmp_path / "honest")
    assert unpack_runs(honest, forged(body, SELECTIONS, [row]))
    with pytest.raises(FormatError):
        unpack_runs(Workspace(tmp_path / "other"), forged(body, SELECTIONS, [row | change]))
    line = {key: json.dumps(value) if isinstance(value, list) else value for key, value in (row | change).items() if value is not None}
    with pytest.raises(FormatError):
        import_bytes(honest.database, Path("x.jsonl"), (json.dumps({"table": "selection"} | line) + "\n").encode())


def test_a_review_beyond_every_trace_is_refused(workspace: Workspace) -> None:
    row = {
        "table": "review",
        "audit_id": "a",
        "reviewer": "r",
        "revision": 0,
        "verdict": "right",
        "created_at": "2026-01-01T00:00:00+00:00",
    }
    assert import_bytes(workspace.database, Path("x.jsonl"), json.dumps(row | {"steps": "[1]"}).encode())["review"] == 1
    times = ({"created_at": "9999-12-31T23:59:59-14:00"}, {"created_at": "0001-01-01T00:00:00+14:00"}, {"reviewer": "r" * 10**6})
    for change in ({"steps": f"[{10**11}]"}, {"steps": "[-1]"}, {"revision": 10**11}, {"steps": '["x"]'}, {"steps": "{}"}, *times):
        with pytest.raises(FormatError):
            import_bytes(workspace.database, Path("x.jsonl"), json.dumps(row | {"steps": "[2]"} | change).encode())


@pytest.mark.parametrize(
    "change",
    [
        {"steps": [10**11]},
        {"steps": [2**70]},
        {"reviewer": "r" * 10**6},
        {"note": "n" * 10**6},
        {"created_at": "9999-12-31T23:59:59-14:00"},
        {"created_at": "0001-01-01T00:00:00+14:00"},
    ],
    ids=lambda change: f"{next(iter(change))} {str(next(iter(change.values())))[:12]}",
)
def test_a_share_pages_review_beyond_every_trace_is_refused(workspace: Workspace, change: dict[str, Any]) -> None:
    row = dict.fromkeys(SELECTIONS.schema.names) | {"audit_id": "a", "turn": 3, "outcome": "accepted"}
    workspace.database.insert(SELECTIONS, [row])
    review = {"audit_id": "a", "reviewer": "r", "verdict": "right", "steps": [1], "note": "", "created_at": "2026-01-01T00:00:00+00:00"}
    file = {"format": "pamer-lab-reviews", "version": 2, "report_id": "r", "exported_at": ""}
    assert import_bytes(workspace.database, Path("x.json"), json.dumps(file | {"reviews": [review]}).encode())["review"] == 1
    with pytest.raises(InputError):
        import_bytes(workspace.database, Path("x.json"), json.dumps(file | {"reviews": [review | change]}).encode())


@pytest.mark.parametrize("body", [b"a," * 5_000 + b"b\n" + b"\n" * 1_000, b"table\n" + b"x\n" * 200_001], ids=["columns", "rows"])
def test_a_spreadsheet_that_would_grow_is_refused(workspace: Workspace, body: bytes) -> None:
    with pytest.raises(FormatError):
        import_bytes(workspace.database, Path("x.csv"), body)
