"""`bench scale`: Ray against local workers on short traces, growth with their number, workers killed all the time, and a full catalogue.

Every part is a ratio inside this run: per number of workers `speedup_N` (time of one Ray worker over that of N) and
`overhead_vs_local_N` (Ray over local, less one, without the start of the workers, which a long job pays once; `overhead_with_start_N`
is with it); `time_vs_linear` (ten times the traces over ten times the time); of killed workers what
was lost or doubled; and how much longer pages and their queries take with a hundred times as many traces and runs in the store
(`catalogue.py`).
The cluster runs before anything is timed; its start is in the details.
"""

import os
import signal
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psutil

from pamer_lab.bench.catalogue import TURNS_EACH, compare, short_traces
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.engines import Engine, EngineSpec, LocalEngine, open_engine
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.turn_rows import TEXTS, TURNS
from pamer_lab.workspace import RUNS, Workspace

HELP = "Ray against local workers on 200 short traces, 200 to 2,000 traces, kills, and a catalogue of 100,000 traces and runs"
TRACES_TIMED = 200
TIMES = 10
"""How many times more traces the growth is measured with."""
KILLS = 100
CATALOGUE = (1_000, 100_000)
POLICY = "sliding-window:3"


def filled(folder: Path, count: int) -> tuple[Workspace, list[str]]:
    workspace, tokens = Workspace(folder), MessageTokens(EstimatedCounter())
    made = short_traces(count)
    for start in range(0, count, 500):
        workspace.add_traces(made[start : start + 500], tokens)
    return workspace, [trace.trace_id for trace in made]


def timed(folder: Path, count: int, engine: Engine, workers: int) -> float:
    """Seconds to replay so many traces in a new workspace, the start of the workers included."""
    workspace, ids = filled(folder, count)
    began = time.perf_counter()
    outcomes = replay_batch(ids, [POLICY], workspace, BatchOptions(processes=workers), engine=engine)
    seconds = time.perf_counter() - began
    assert all(outcome.status == "done" for outcome in outcomes)
    return seconds


def run(traces: int = TRACES_TIMED, kills: int = KILLS, catalogue: tuple[int, int] = CATALOGUE) -> tuple[dict[str, Any], dict[str, Any]]:
    ratios: dict[str, Any] = {}
    details: dict[str, Any] = {"traces": traces, "turns_each": TURNS_EACH, "policy": POLICY, "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory(prefix="pamer-scale-") as place:
        folder = Path(place)
        began = time.perf_counter()
        with closing(open_engine(EngineSpec("ray"))) as cluster:
            details["cluster_start_seconds"] = round(time.perf_counter() - began, 2)
            seconds, starts = {}, {}
            for workers in (1, 2):
                for name, engine in (("local", LocalEngine()), ("ray", cluster)):
                    # As many traces as workers: the time until every worker has done one.
                    starts[name, workers] = timed(folder / f"{name}-{workers}-start", workers, engine, workers)
                    seconds[name, workers] = timed(folder / f"{name}-{workers}", workers + traces, engine, workers)
                working = {name: seconds[name, workers] - starts[name, workers] for name in ("local", "ray")}
                ratios[f"overhead_vs_local_{workers}"] = working["ray"] / working["local"] - 1
                ratios[f"overhead_with_start_{workers}"] = seconds["ray", workers] / seconds["local", workers] - 1
                ratios[f"speedup_{workers}"] = seconds["ray", 1] / seconds["ray", workers]
            more = timed(folder / "more", TIMES * traces, LocalEngine(), 2)
            ratios["time_vs_linear"] = more / (TIMES * seconds["local", 2])
            details["seconds"] = {f"{name}_{workers}": round(taken, 2) for (name, workers), taken in seconds.items()}
            details["start_seconds"] = {f"{name}_{workers}": round(taken, 2) for (name, workers), taken in starts.items()}
            details["seconds"][f"local_2_with_{TIMES}_times_the_traces"] = round(more, 2)
            ratios |= killing(folder / "killed", cluster, kills)
        found, details["catalogue"] = compare(folder, catalogue)
    ratios |= found
    return ratios, details


def killing(folder: Path, engine: Engine, kills: int) -> dict[str, Any]:
    """Kill a worker again and again while a batch runs, start the batch again until all is done, and count what is stored."""
    workspace, ids = filled(folder, 40)
    database = workspace.database
    done, over = 0, threading.Event()

    def kill() -> None:
        nonlocal done
        while done < kills and not over.wait(0.3):
            found = [child for child in psutil.Process().children(recursive=True) if _works(child)]
            if found:
                os.kill(found[done % len(found)].pid, signal.SIGKILL)
                done += 1

    rounds = 0
    while done < kills or rounds == 0:
        over.clear()
        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        outcomes = replay_batch(ids, [POLICY], workspace, BatchOptions(processes=2, fresh=rounds % 4 == 3), engine=engine)
        over.set()
        thread.join()
        rounds += 1
        if all(outcome.status == "done" for outcome in outcomes) and done < kills:
            ids = _others(workspace, ids, rounds)
    while not all(outcome.status == "done" for outcome in replay_batch(ids, [POLICY], workspace, BatchOptions(processes=2), engine=engine)):
        rounds += 1
    doubled = 0
    for spec in (RUNS, TURNS, TEXTS):
        keys = [tuple(row[name] for name in spec.key) for row in database.rows(spec, columns=list(spec.key))]
        doubled += len(keys) - len(set(keys))
    heads = RunStore(workspace).heads()
    lost = sum(head.turns - RunStore(workspace).stored_count(head.run_id) for head in heads if head.status == "done")
    return {"kills": done, "lost": lost + len(set(ids) - {head.trace_id for head in heads}), "doubled": doubled, "batches": rounds}


def _others(workspace: Workspace, ids: list[str], number: int) -> list[str]:
    """As many new traces, so that there is always work to interrupt."""
    made = [msgspec.structs.replace(trace, trace_id=f"{trace.trace_id}-{number}") for trace in short_traces(len(ids))]
    workspace.add_traces(made, MessageTokens(EstimatedCounter()))
    return [trace.trace_id for trace in made]


def _works(process: psutil.Process) -> bool:
    """Whether a process is one of our workers, of either engine."""
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return line.startswith("ray::Serving") or "pamer_lab.engines.serve" in line
