"""Traces through policies in worker processes: progress, failures, a kill, and going on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pamer_lab.errors import Cancelled
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.batch import BatchOptions, fast_first, replay_batch
from pamer_lab.runs.batch_state import BatchProgress
from pamer_lab.runs.engine import replay
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace, untimed

PROJECT = Path(__file__).resolve().parents[2]
POLICIES = ["base", "periodic-summary:2"]


def filled(workspace: Workspace, turns: int, traces: int = 3) -> list[str]:
    made = [long_trace(turns + number, trace_id=f"t-{number}") for number in range(traces)]
    workspace.add_traces(made, profile_tokens(load_profile("embedded")))
    return [trace.trace_id for trace in made]


def test_a_batch_in_processes_gives_the_same_runs_as_one_by_one(workspace: Workspace, tmp_path: Path) -> None:
    ids = filled(workspace, 6)
    seen: list[BatchProgress] = []
    outcomes = replay_batch(ids, POLICIES, workspace, BatchOptions(processes=2), report=seen.append)
    assert [(outcome.trace_id, outcome.policy) for outcome in outcomes] == [(trace, policy) for trace in ids for policy in POLICIES]
    assert {outcome.status for outcome in outcomes} == {"done"}, outcomes
    other, store = Workspace(tmp_path / "other"), RunStore(workspace)
    for outcome in outcomes:
        alone = replay(workspace.trace(outcome.trace_id).trace, outcome.policy, other)
        assert alone.run_id == outcome.run_id
        assert [untimed(turn) for turn in alone.turns] == [untimed(turn) for turn in store.turns(outcome.run_id)]
    last = seen[-1]
    assert (last.done, last.total, last.runs_done, last.runs) == (42, 42, 6, 6) and last.seconds_left == 0
    assert all(progress.done <= progress.total for progress in seen) and last.line.count("42") == last.line.count("6") == 2


def test_a_failure_is_reported_and_stops_nothing_else(workspace: Workspace) -> None:
    ids = filled(workspace, 3, traces=1)
    outcomes = replay_batch(["t-unknown", *ids], ["base"], workspace, BatchOptions())
    assert [outcome.status for outcome in outcomes] == ["failed", "done"]
    assert "t-unknown" in outcomes[0].error


def test_a_stopped_batch_keeps_what_is_finished(workspace: Workspace) -> None:
    ids = filled(workspace, 4)
    seen: list[BatchProgress] = []
    with pytest.raises(Cancelled):
        replay_batch(ids, ["base"], workspace, BatchOptions(), report=seen.append, cancelled=lambda: any(p.runs_done for p in seen))
    assert [head.status for head in RunStore(workspace).heads()] == ["done"]
    assert {outcome.status for outcome in replay_batch(ids, ["base"], workspace)} == {"done"}


HELD_UP = """
import os, sys, time
from pamer_lab.runs import engine, ledger
engine.STORE_EVERY = 0.0
plain, parent = ledger.Ledger.follow, os.getppid()
def held_up(self, answer, history, counter):
    while history.t == 5 and os.getppid() == parent and any('worker' in word for word in sys.orig_argv):
        time.sleep(0.01)
    return plain(self, answer, history, counter)
ledger.Ledger.follow = held_up
"""
"""Python runs a `sitecustomize` at start: at turn 5 the workers wait until the process that started them is killed."""


def test_a_killed_batch_resumes_without_computing_finished_turns_again(workspace: Workspace, tmp_path: Path) -> None:
    ids = filled(workspace, 80, traces=2)
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "sitecustomize.py").write_text(HELD_UP, encoding="utf-8")
    command = [sys.executable, "-m", "pamer_lab.cli", "replay", *ids, "--policy", "periodic-summary:2", "--processes", "2", "--json"]
    path = os.pathsep.join([str(tmp_path / "held"), str(PROJECT)])
    environment = os.environ | {"PYTHONPATH": path, "PAMER_LAB_HOME": str(workspace.path)}
    child = subprocess.Popen(command, env=environment, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    store = RunStore(workspace)
    _wait(lambda: any(store.stored_count(head.run_id) for head in store.heads()))
    workers = psutil.Process(child.pid).children(recursive=True)
    child.send_signal(signal.SIGKILL)
    child.wait()
    _wait(lambda: not psutil.wait_procs(workers, timeout=0)[1])  # they end once they notice
    before = {head.run_id: store.turns(head.run_id) for head in store.heads()}
    assert 0 < sum(map(len, before.values())) < 161 and max(map(len, before.values())) < 80
    outcomes = replay_batch(ids, ["periodic-summary:2"], workspace, BatchOptions(processes=2))
    assert {outcome.status for outcome in outcomes} == {"done"}, outcomes
    for outcome in outcomes:
        turns = store.turns(outcome.run_id)
        assert len(turns) == store.stored_count(outcome.run_id) == store.run(outcome.run_id).head.turns
        kept = before.get(outcome.run_id, [])
        assert turns[: len(kept)] == kept, "a turn that was stored has kept even its time"
        whole = replay(outcome.trace_id, "periodic-summary:2", workspace)
        assert whole.totals["main_input"] == sum(turn.active_tokens for turn in turns)


def _wait(fulfilled: Callable[[], bool], seconds: float = 240) -> None:
    """Until something holds; starting Python takes long on a busy machine."""
    end = time.monotonic() + seconds
    while not fulfilled():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def test_policies_without_heads_go_first_and_say_what_they_are_doing(workspace: Workspace) -> None:
    assert fast_first(["pamer", "base", "pamer+", "sliding-window:5"]) == [("base", "sliding-window:5"), ("pamer", "pamer+")]
    assert fast_first(["base"]) == [("base",)]
    assert fast_first(["pace-paper", "base"]) == [("base",), ("pace-paper",)], "one that embeds waits for its turn, too"
    seen: list[BatchProgress] = []
    replay_batch(filled(workspace, 3, traces=1), ["base"], workspace, BatchOptions(), report=seen.append)
    assert seen[0].doing.startswith("base") and seen[0].doing in seen[0].line and not seen[-1].doing
