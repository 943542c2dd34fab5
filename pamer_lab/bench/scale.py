"""`bench scale`: Ray against local workers on short traces, growth with their number, repeatedly killed workers, and a full catalogue.

Each part gives ratios within this run. For N workers: `overhead_vs_local_N` (time of Ray over local, minus one, counted from when every
worker is busy, because a long job pays for starting them only once; `overhead_with_start_N` includes the start), `worker_cpu_vs_local_N`
(the same for the workers' processor time, which other programs hardly affect), `all_cpu_vs_local_N` (the same for all processes, including
the caller and Ray's own) and `speedup_N` (time of one Ray worker over that of N), each the median of rounds in which local and Ray
alternate. Then `time_vs_linear` (the time of ten times the traces over ten times the time), what killed workers lost or stored twice, and
how much longer pages and queries take with a hundred times as many traces and runs in the store (`catalogue.py`). The cluster is running
before anything is timed; its start-up time is in the details.
"""

import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil

from pamer_lab.bench.catalogue import TURNS_EACH, compare, short_traces
from pamer_lab.bench.measure import say
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.engines import Engine, EngineSpec, LocalEngine, open_engine
from pamer_lab.runs.batch import BatchOptions, replay_batch
from pamer_lab.runs.batch_state import BatchProgress
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.turn_rows import TEXTS, TURNS
from pamer_lab.workspace import RUNS, Workspace

HELP = "Ray against local workers on 200 short traces, 200 to 2,000 traces, kills, and a catalogue of 100,000 traces and runs"
TRACES_TIMED = 200
ROUNDS = 5
WHILE_STARTING = 100
"""Traces that one worker may finish before the next one has started."""
TIMES = 10
"""Growth is measured with this many times the traces."""
KILLS = 100
KILL_WITHIN = 0.06
"""A kill comes within this many seconds of a progress report."""
LOOK_EVERY = 0.1
CATALOGUE = (1_000, 100_000)
POLICY = "sliding-window:3"


def filled(folder: Path, count: int) -> tuple[Workspace, list[str]]:
    workspace, tokens = Workspace(folder), MessageTokens(EstimatedCounter())
    made = short_traces(count)
    for start in range(0, count, 500):
        workspace.add_traces(made[start : start + 500], tokens)
    return workspace, [trace.trace_id for trace in made]


@dataclass
class Clocks:
    """Times of a batch: from its start, and from the moment when `warm` traces are done, so that every worker is busy."""

    warm: int
    began: float = field(default_factory=time.perf_counter)
    first: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """At that moment: the time, and the processor time so far of the workers and of all processes."""
    last: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def see(self, progress: BatchProgress) -> None:
        if not self.first[0] and progress.runs_done >= self.warm:
            self.first = _now()
        if not self.last[0] and progress.runs_done == progress.runs:
            self.last = _now()

    @property
    def whole(self) -> float:
        return self.last[0] - self.began

    @property
    def working(self) -> float:
        return self.last[0] - self.first[0]

    @property
    def cpu(self) -> float:
        return self.last[1] - self.first[1]

    @property
    def all_cpu(self) -> float:
        return self.last[2] - self.first[2]


def _now() -> tuple[float, float, float]:
    """The time, and the processor time so far of the running workers (of either engine) and of all processes, including Ray's own."""
    own = psutil.Process()
    spent = [(_works(child), _spent(child)) for child in own.children(recursive=True)]
    return time.perf_counter(), sum(seconds for works, seconds in spent if works), _spent(own) + sum(seconds for _, seconds in spent)


def _spent(process: psutil.Process) -> float:
    """Processor time so far; 0 for a process that has ended."""
    try:
        return float(sum(process.cpu_times()[:2]))
    except psutil.Error:
        return 0.0


def timed(folder: Path, count: int, engine: Engine, workers: int) -> Clocks:
    """Times of replaying `count` traces in a new workspace, after those that are done while the workers start."""
    warm = 1 + WHILE_STARTING * (workers - 1)
    workspace, ids = filled(folder, warm + count)
    clocks = Clocks(warm)
    outcomes = replay_batch(ids, [POLICY], workspace, BatchOptions(processes=workers), engine=engine, report=clocks.see)
    assert all(outcome.status == "done" for outcome in outcomes)
    return clocks


Measured = tuple[dict[str, Any], dict[str, Any]]
"""Ratios, and the figures behind them."""


def run(traces: int = TRACES_TIMED, parts: Sequence[str] = ()) -> Measured:
    """`parts`: run only these."""
    ratios: dict[str, Any] = {}
    details: dict[str, Any] = {"traces": traces, "turns_each": TURNS_EACH, "policy": POLICY, "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory(prefix="pamer-scale-") as place:
        for name, measure in PARTS.items():
            if not parts or name in parts:
                say(f"part {name}")
                found, details[name] = measure(Path(place) / name, traces)
                ratios |= found
    return ratios, details


def overhead(folder: Path, traces: int) -> Measured:
    """Ray over local: medians of rounds in which they alternate."""
    began = time.perf_counter()
    with closing(open_engine(EngineSpec("ray"))) as cluster:
        details: dict[str, Any] = {"cluster_start_seconds": time.perf_counter() - began}
        engines: dict[str, Engine] = {"local": LocalEngine(), "ray": cluster}
        taken: dict[tuple[str, int], list[Clocks]] = {(name, workers): [] for workers in (1, 2) for name in engines}
        for number in range(ROUNDS):
            for name, workers in taken:
                clocks = timed(folder / f"{name}-{workers}-{number}", traces, engines[name], workers)
                spent = f"{clocks.cpu:.1f} s of its processors, {clocks.all_cpu:.1f} s of all"
                say(f"{name}, {workers} workers: {clocks.working:.1f} s, {spent}")
                taken[name, workers].append(clocks)
    ratios = {}
    for workers in (1, 2):
        ray, local, one = taken["ray", workers], taken["local", workers], taken["ray", 1]
        ratios[f"overhead_vs_local_{workers}"] = _ratio([clocks.working for clocks in ray], [clocks.working for clocks in local]) - 1
        ratios[f"worker_cpu_vs_local_{workers}"] = _ratio([clocks.cpu for clocks in ray], [clocks.cpu for clocks in local]) - 1
        ratios[f"all_cpu_vs_local_{workers}"] = _ratio([clocks.all_cpu for clocks in ray], [clocks.all_cpu for clocks in local]) - 1
        ratios[f"overhead_with_start_{workers}"] = _ratio([clocks.whole for clocks in ray], [clocks.whole for clocks in local]) - 1
        ratios[f"speedup_{workers}"] = _ratio([clocks.working for clocks in one], [clocks.working for clocks in ray])
    for kind in ("whole", "working", "cpu", "all_cpu"):
        details[kind] = {
            f"{name}_{workers}": [round(getattr(clocks, kind), 2) for clocks in found] for (name, workers), found in taken.items()
        }
    return ratios, details


def _ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The median ratio over rounds."""
    return statistics.median(first / second for first, second in zip(one, other, strict=True))


def growth(folder: Path, traces: int) -> Measured:
    """The time of ten times the traces over ten times the time, with two local workers."""
    few, many = (timed(folder / str(count), count, LocalEngine(), 2) for count in (traces, TIMES * traces))
    ratios = {"time_vs_linear": many.working / (TIMES * few.working), "worker_cpu_vs_linear": many.cpu / (TIMES * few.cpu)}
    return ratios, {"seconds": [few.working, many.working], "cpu": [few.cpu, many.cpu]}


def kills(folder: Path, traces: int) -> Measured:
    """Workers of a Ray cluster killed again and again."""
    with closing(open_engine(EngineSpec("ray"))) as cluster:
        return killing(folder, cluster, KILLS), {}


def killing(folder: Path, engine: Engine, kills: int) -> dict[str, Any]:
    """Kill a worker again and again while a batch runs, restart the batch until it is complete, and count what is stored.

    Each kill comes shortly after a progress report, so that most hit writes rather than the start of a worker.
    """
    workspace, ids = filled(folder, 40)
    database = workspace.database
    done, over, spoken = 0, threading.Event(), threading.Event()
    chance = random.Random(0)  # noqa: S311

    def kill() -> None:
        nonlocal done
        while done < kills and not over.is_set():
            if not spoken.wait(LOOK_EVERY) or over.wait(chance.uniform(0, KILL_WITHIN)):
                continue
            found = [child for child in psutil.Process().children(recursive=True) if _works(child)]
            if found:
                os.kill(max(found, key=_spent).pid, signal.SIGKILL)
                done += 1
            spoken.clear()

    rounds = 0
    while done < kills or rounds == 0:
        over.clear()
        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        options = BatchOptions(processes=2, fresh=rounds % 4 == 3)
        outcomes = replay_batch(ids, [POLICY], workspace, options, engine=engine, report=lambda progress: spoken.set())
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
    """The same number of new traces, so that there is always work to interrupt."""
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


PARTS: Mapping[str, Callable[[Path, int], Measured]] = {
    "overhead": overhead,
    "growth": growth,
    "kills": kills,
    "catalogue": lambda folder, traces: compare(folder, CATALOGUE),
}
"""The names that `--part` accepts, in the order of the run."""
