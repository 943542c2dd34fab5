"""Replays on a Ray cluster: the same rows as in processes of this machine, and what the command says."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import ray

from pamer_lab.cli import main
from pamer_lab.engines import Engine, EngineSpec, open_engine, parse_engine
from pamer_lab.engines.ray_cluster import RayWorker
from pamer_lab.engines.ray_joining import require_answer
from pamer_lab.errors import InputError
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.batch_state import BatchProgress
from pamer_lab.runs.turn_rows import TEXTS, TURNS
from pamer_lab.workspace import RUNS, Workspace
from tests.runs.making import long_trace

POLICIES = ["base", "sliding-window:2", "periodic-summary:2"]
CLOCKS = {"seconds", "started", "head"}
"""Columns that hold times."""


def filled(folder: Path, traces: int = 3) -> tuple[Workspace, list[str]]:
    made = [long_trace(4 + number, trace_id=f"t-{number}") for number in range(traces)]
    workspace = Workspace(folder)
    workspace.add_traces(made, profile_tokens(load_profile("embedded")))
    return workspace, [trace.trace_id for trace in made]


def stored(workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    """Every row of the three tables, without times, sorted by key."""
    found = {}
    for spec in (RUNS, TURNS, TEXTS):
        rows = workspace.database.rows(spec)
        rows.sort(key=lambda row: tuple(row[name] for name in spec.key))
        found[spec.name] = [{name: value for name, value in row.items() if name not in CLOCKS} for row in rows]
    return found


def test_a_cluster_stores_the_same_rows_as_processes_of_this_machine(cluster: Engine, tmp_path: Path) -> None:
    here, ids = filled(tmp_path / "here")
    there, _ = filled(tmp_path / "there")
    seen: list[BatchProgress] = []
    assert {outcome.status for outcome in replay_batch(ids, POLICIES, here, BatchOptions())} == {"done"}
    outcomes = replay_batch(ids, POLICIES, there, BatchOptions(processes=2), engine=cluster, report=seen.append)
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert stored(here) == stored(there)
    assert (seen[-1].runs_done, seen[-1].runs, seen[-1].done) == (9, 9, seen[-1].total)
    before = there.database.version(TURNS)
    again = replay_batch(ids, POLICIES, there, BatchOptions(processes=2), engine=cluster)
    assert [outcome.run_id for outcome in again] == [outcome.run_id for outcome in outcomes]
    assert there.database.version(TURNS) == before, "what is there is not computed again"


def test_the_command_names_its_engine(cluster: Engine, workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    _, ids = filled(workspace.path, traces=2)
    assert main(["replay", *ids, "--policy", "base", "--engine", "ray", "--workers", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == {"name": "ray", "workers": 1} and [run["status"] for run in found["runs"]] == ["done", "done"]
    assert main(["replay", *ids, "--policy", "base", "--workers", "0", "--json"]) == 0
    local = json.loads(capsys.readouterr().out)
    assert local["engine"] == {"name": "local", "workers": 0} and local["runs"] == found["runs"]


def test_a_worker_that_is_killed_leaves_nothing_but_json_on_standard_output(
    cluster: Engine, workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ids = filled(workspace.path, traces=2)
    plain, killed = RayWorker.give, list[int]()

    def giving(worker: RayWorker, jobs: Sequence[object]) -> None:
        plain(worker, jobs)
        if not killed:
            killed.append(ray.get(worker._started))
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(RayWorker, "give", giving)
    assert main(["replay", *ids, "--policy", "base", "--engine", "ray", "--workers", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    end = time.monotonic() + 60
    while "(raylet)" not in err + out and time.monotonic() < end:  # Ray speaks some moments after the fact
        more = capsys.readouterr()
        out, err = out + more.out, err + more.err
    assert "(raylet)" in err and [run["status"] for run in json.loads(out)["runs"]] == ["done", "done"] and killed


def test_without_ray_the_message_says_how_to_install_it(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ids = filled(workspace.path, traces=1)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["replay", *ids, "--policy", "base", "--engine", "ray"]) == 2
    assert "pip install 'pamer-lab[ray]'" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "Ray", "spark", "local:8", "rayon:1"])
def test_an_unknown_engine_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="engine"):
        parse_engine(text)


@pytest.mark.parametrize(
    ("given", "reason"), [("0", "needs at least 1 worker"), ("-1", "not a number of workers"), ("1.5", "not a number")]
)
def test_a_cluster_needs_a_number_of_workers(given: str, reason: str, workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    _, ids = filled(workspace.path, traces=1)
    with suppress(SystemExit):  # argparse leaves by itself
        assert main(["replay", *ids, "--policy", "base", "--engine", "ray", "--workers", given]) == 2
    assert reason in capsys.readouterr().err


def test_an_address_where_nothing_listens_is_refused_before_ray_tries() -> None:
    with closing(socket.socket()) as bound:  # bound, so that nobody else takes it, and not listening
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
            with pytest.raises(InputError, match=str(port)):
                require_answer(address)
        bound.listen()
        require_answer(f"127.0.0.1:{port}")
    require_answer("auto")


@pytest.mark.parametrize(("gpus", "memory"), [(1.0, 0), (0.0, 10**15)])
def test_a_cluster_without_room_for_one_worker_is_refused(cluster: Engine, gpus: float, memory: int) -> None:
    engine = open_engine(EngineSpec("ray", gpus_per_worker=gpus, memory_per_worker=memory))
    with pytest.raises(InputError, match="GPU"):
        engine.capacity()
    with pytest.raises(InputError, match="GPU"):
        engine.start("pamer_lab.runs.worker", 1)


@pytest.mark.parametrize("gpus", [-1, 1.5, float("nan"), float("inf")])
def test_gpus_that_ray_cannot_reserve_are_refused(gpus: float) -> None:
    with pytest.raises(InputError, match="--gpus-per-worker"):
        parse_engine("ray", gpus_per_worker=gpus)
    assert parse_engine("ray", gpus_per_worker=0.5).gpus_per_worker == 0.5


def test_an_address_is_all_that_follows_the_first_colon() -> None:
    assert parse_engine("ray:ray://head:10001").address == "ray://head:10001" and parse_engine("ray").address == ""
    with pytest.raises(InputError):
        parse_engine("local", gpus_per_worker=1)
