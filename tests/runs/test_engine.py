"""Runs in a store: the same again, killed and continued, cancelled, locked, refused."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from filelock import FileLock

import pamer_lab
from pamer_lab.decisions import Decision
from pamer_lab.errors import Cancelled, InputError, StorageError
from pamer_lab.memory import MemoryStore
from pamer_lab.policies.interface import History
from pamer_lab.policies.sliding_window import SlidingWindow
from pamer_lab.runs import engine
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.ledger import LedgerError
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.turn_rows import TEXTS, TURNS
from pamer_lab.runs.values import Turn
from pamer_lab.storage import TableSpec
from pamer_lab.trajectory.formats.native import to_native
from pamer_lab.workspace import RUNS, Workspace
from tests.runs.making import PARTS, SMALL, long_trace, untimed

PROJECT = Path(__file__).resolve().parents[2]


def plain(turns: tuple[Turn, ...]) -> list[Turn]:
    return [untimed(turn) for turn in turns]


def test_the_public_name_is_the_function_whatever_was_imported_before() -> None:
    assert pamer_lab.replay is replay
    from pamer_lab import replay as public

    assert public is replay


@pytest.mark.parametrize("policy", ["base", "periodic-summary:3", "periodic-summary:2:accumulate"])
def test_a_stored_run_comes_back_as_it_was_and_is_not_computed_again(workspace: Workspace, policy: str) -> None:
    trace = long_trace(9)
    first = pamer_lab.replay(trace, policy, workspace)
    seen: list[int] = []
    again = replay(trace.trace_id, policy, workspace, ReplayOptions(watch=lambda turn, of: seen.append(turn.t)))
    assert again.turns == first.turns and again.head == first.head and seen == []
    fresh = replay(trace, policy, workspace, ReplayOptions(fresh=True))
    assert plain(fresh.turns) == plain(first.turns) and fresh.run_id == first.run_id
    assert RunStore(workspace).stored_count(first.run_id) == 9


@pytest.mark.parametrize("policy", ["periodic-summary:3", f"pamer+{SMALL}"])
def test_without_a_workspace_the_run_is_the_same_and_nothing_is_left(
    workspace: Workspace, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, options = set(tmp_path.iterdir()), ReplayOptions(device="cpu", parts=PARTS)
    run = replay(long_trace(9), policy, options=options)
    assert set(tmp_path.iterdir()) == before
    stored = replay(long_trace(9), policy, workspace, options)
    assert run.run_id == stored.run_id and plain(run.turns) == plain(stored.turns)


def test_an_id_without_a_workspace_is_refused() -> None:
    with pytest.raises(InputError, match="t-long"):
        replay("t-long", "base")


def test_settings_and_limits_make_other_runs(workspace: Workspace) -> None:
    trace = long_trace(6)
    runs = [
        replay(trace, "sliding-window:2", workspace),
        replay(trace, "sliding-window:3", workspace),
        replay(trace, "sliding-window:2", workspace, ReplayOptions(turn_limit=4)),
    ]
    assert len({run.run_id for run in runs}) == 3
    assert [len(run.turns) for run in runs] == [6, 6, 4]
    assert plain(runs[2].turns) == plain(runs[0].turns)[:4]
    assert replay(trace, "sliding-window:2", workspace, ReplayOptions(turn_limit=99)).run_id == runs[0].run_id


def test_a_cancelled_run_keeps_its_turns_and_goes_on(workspace: Workspace) -> None:
    trace, seen = long_trace(8), []
    stop = ReplayOptions(watch=lambda turn, of: seen.append(turn.t), cancelled=lambda: len(seen) >= 3)
    with pytest.raises(Cancelled, match=r"\b3\b"):
        replay(trace, "periodic-summary:2", workspace, stop)
    (head,) = RunStore(workspace).heads(trace_id=trace.trace_id)
    assert head.status == "cancelled" and RunStore(workspace).stored_count(head.run_id) == 3
    run = replay(trace, "periodic-summary:2", workspace, ReplayOptions(watch=lambda turn, of: seen.append(turn.t)))
    assert seen == list(range(8)) and run.head.status == "done"
    whole = replay(trace, "periodic-summary:2", Workspace(workspace.path.parent / "other"))
    assert plain(run.turns) == plain(whole.turns) and run.totals == whole.totals


KILLED = """
import sys
from pamer_lab import Workspace, read_traces
from pamer_lab.runs import engine
engine.STORE_EVERY = 0.0
trace = read_traces(sys.argv[1])[0]
def watch(turn, of):
    print(turn.t, flush=True)
    if turn.t == 20:
        sys.stdin.read()
engine.replay(trace, "periodic-summary:2", Workspace(sys.argv[2]), engine.ReplayOptions(watch=watch))
"""


def test_a_killed_run_continues_without_computing_finished_turns_again(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(to_native(long_trace(60)))
    trace = pamer_lab.read_traces(file)[0]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", KILLED, str(file), str(workspace.path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=PROJECT)
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= 20:
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    store = RunStore(workspace)
    (head,) = store.heads()
    stored = len(store.turns(head.run_id))
    assert head.status == "running" and 20 <= stored <= 21
    seen: list[int] = []
    run = replay(trace, "periodic-summary:2", workspace, ReplayOptions(watch=lambda turn, of: seen.append(turn.t)))
    assert seen == list(range(stored, 60))
    whole = replay(trace, "periodic-summary:2", Workspace(tmp_path / "other"))
    assert plain(run.turns) == plain(whole.turns) and run.totals == whole.totals


@pytest.mark.parametrize("policy", ["pamer", "pamer+"])
def test_a_run_that_broke_between_its_memories_and_its_turns_goes_on(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    trace, options, plain_add = long_trace(12), ReplayOptions(parts=PARTS), RunStore.add_turns

    def breaking(store: RunStore, run_id: str, turns: list[Turn]) -> None:
        if any(turn.t >= 7 for turn in turns):
            raise StorageError("the disk is full")
        plain_add(store, run_id, turns)

    monkeypatch.setattr(engine, "STORE_EVERY", 0.0)
    monkeypatch.setattr(RunStore, "add_turns", breaking)
    with pytest.raises(StorageError, match="disk is full"):
        replay(trace, policy + SMALL, workspace, options)
    monkeypatch.undo()
    (head,) = RunStore(workspace).heads()
    assert head.status == "running" and RunStore(workspace).stored_count(head.run_id) == 7
    seen: list[int] = []
    run = replay(trace, policy + SMALL, workspace, ReplayOptions(parts=PARTS, watch=lambda turn, of: seen.append(turn.t)))
    assert seen == list(range(7, 12))
    whole = replay(trace, policy + SMALL, Workspace(tmp_path / "other"), options)
    assert plain(run.turns) == plain(whole.turns) and run.totals == whole.totals
    stored = [MemoryStore(place.database).load(run.run_id).memories for place in (workspace, Workspace(tmp_path / "other"))]
    assert [memory.memory_id for memory in stored[0]] == [memory.memory_id for memory in stored[1]] and stored[0]


def test_a_short_run_is_one_commit_of_each_table(workspace: Workspace) -> None:
    trace, tables = long_trace(6), (RUNS, TURNS, TEXTS)
    replay(trace, "base", workspace)
    before = {spec.name: workspace.database.version(spec) for spec in tables}
    replay(trace, "periodic-summary:2", workspace)
    assert {spec.name: workspace.database.version(spec) - before[spec.name] for spec in tables} == {
        RUNS.name: 1,
        TURNS.name: 1,
        TEXTS.name: 1 + (before[TEXTS.name] == 0),  # the table's own first version
    }


@pytest.mark.parametrize("broken", [TURNS, RUNS], ids=lambda spec: spec.name)
def test_a_short_run_that_broke_before_its_row_goes_on_and_doubles_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, broken: TableSpec
) -> None:
    trace, policy, plain_add = long_trace(6), "periodic-summary:2", RunStore._add

    def breaking(store: RunStore, spec: TableSpec, rows: list[dict[str, Any]]) -> None:
        if spec is broken:
            raise StorageError("killed")
        plain_add(store, spec, rows)

    monkeypatch.setattr(RunStore, "_add", breaking)
    with pytest.raises(StorageError, match="killed"):
        replay(trace, policy, workspace)
    monkeypatch.undo()
    assert not RunStore(workspace).heads() and workspace.database.count(TEXTS)
    run = replay(trace, policy, workspace)
    assert run.head.status == "done" and workspace.database.count(TURNS) == 6
    texts = [(row["run_id"], row["text_id"]) for row in workspace.database.rows(TEXTS)]
    assert len(texts) == len(set(texts)) and RunStore(workspace).run(run.run_id).turns == run.turns


def test_turns_behind_a_gap_are_computed_again(workspace: Workspace) -> None:
    trace = long_trace(6)
    run = replay(trace, "base", workspace)
    store = RunStore(workspace)
    store.put_head(msgspec.structs.replace(run.head, status="running"))
    store.forget_after(run.run_id, 2)
    store.add_turns(run.run_id, run.turns[4:])
    assert plain(replay(trace, "base", workspace).turns) == plain(run.turns)
    assert store.stored_count(run.run_id) == 6


def test_two_processes_do_not_work_on_one_run(workspace: Workspace) -> None:
    trace = long_trace(3)
    run = replay(trace, "base", workspace)
    with FileLock(workspace.path / "locks" / f"{run.run_id}.lock"), pytest.raises(InputError, match=run.run_id):
        replay(trace, "base", workspace)


def test_a_policy_that_loses_a_block_is_stopped_and_the_run_says_so(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless:
        def turn(self, history: History) -> Decision:
            items = [*history.head(), *history.raw([(0, history.t)])]
            return Decision("pass", "keeps all", tuple(items[:-1] if history.t == 2 else items) if history.t != 3 else tuple(items[::-1]))

        def resume(self, answers: object) -> None:
            pass

    monkeypatch.setattr(SlidingWindow, "start", lambda self, resources: Careless())
    with pytest.raises(LedgerError, match="turn 3"):
        replay(long_trace(5), "sliding-window:5", workspace)
    (head,) = RunStore(workspace).heads()
    assert head.status == "failed" and "turn 3" in head.error


def test_an_unknown_run_or_trace_is_answered_with_what_to_do(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="pamer-lab replay"):
        RunStore(workspace).run("r-none")
    with pytest.raises(InputError, match="t-none"):
        replay("t-none", "base", workspace)


def test_a_page_can_follow_a_run_that_is_going_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "STORE_EVERY", 0.0)
    counts: list[int] = []
    reader = RunStore(Workspace(workspace.path))

    def watch(turn: Turn, of: int) -> None:
        (head,) = reader.heads()
        counts.append(len(reader.turns(head.run_id)))
        assert head.status == "running"

    replay(long_trace(5), "periodic-summary:2", workspace, ReplayOptions(watch=watch))
    assert counts == [1, 2, 3, 4, 5]


def test_a_workspace_that_cannot_be_written_is_one_sentence(workspace: Workspace) -> None:
    trace = long_trace(2)
    replay(trace, "base", workspace)
    blocked = workspace.path / "locks"
    for file in blocked.iterdir():
        file.unlink()
    blocked.rmdir()
    blocked.write_text("a file where a folder should be")
    with pytest.raises(StorageError, match=re.escape(str(workspace.path))):
        replay(trace, "sliding-window:2", workspace)


def test_a_removed_run_takes_its_memories_along(workspace: Workspace) -> None:
    run = replay(long_trace(8), "pamer" + SMALL, workspace, ReplayOptions(parts=PARTS))
    memories = MemoryStore(workspace.database)
    assert memories.sessions().get(run.run_id)
    RunStore(workspace).remove(run.run_id)
    assert RunStore(workspace).head(run.run_id) is None and run.run_id not in memories.sessions()
