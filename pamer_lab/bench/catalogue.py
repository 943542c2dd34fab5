"""A part of `bench scale`: how long pages and queries take in a store of very many traces and runs.

One trace is really replayed; its rows are stored again under other names. Pages are timed in Chromium, from the request to the first
chart (or table, or until a page without either has settled). Pages and queries are medians of `VISITS` after an untimed first one.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from pamer_lab.bench.measure import messages
from pamer_lab.bench.pages import CHART, SETTLED, TABLE
from pamer_lab.bench.server import chromium, serving
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.runs.engine import replay
from pamer_lab.runs.store import RunStore, run_row
from pamer_lab.runs.turn_rows import TURNS
from pamer_lab.runs.values import RunInfo
from pamer_lab.trajectory.values import Trace
from pamer_lab.workspace import RUNS, TRACES, Workspace
from pamer_lab.workspace.catalogue import Filters, listed
from pamer_lab.workspace.store import trace_row

TURNS_EACH = 8
POLICY = "base"
AT_ONCE = 10_000
"""Rows per commit."""
PAGES = {
    "home": ("/", TABLE),
    "transcript": ("/trace?trace=t-{middle}", CHART),
    "replay": ("/replay?trace=t-{middle}&policies=base", CHART),
    "growth": ("/growth?policies=base", CHART),
    "audit": ("/audit", ""),
    "live": ("/live", ""),
    "arena": ("/arena", ""),
}
"""Page -> its address, and the element to wait for; if empty, until the page has settled."""
VISITS = 3


def short_traces(count: int) -> list[Trace]:
    return [Trace(f"t-scale-{number}", f"q{number}", "made", tuple(messages(TURNS_EACH, seed=number, words=40))) for number in range(count)]


def make(folder: Path, count: int) -> Workspace:
    """A workspace with `count` traces, each with one finished run and its turns."""
    workspace, tokens = Workspace(folder), MessageTokens(EstimatedCounter())
    (trace,) = short_traces(1)
    workspace.add_traces([trace], tokens)
    head = replay(trace.trace_id, POLICY, workspace).head
    row, turns, database = trace_row(trace, tokens), workspace.database.rows(TURNS), workspace.database
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(count, start + AT_ONCE))
        database.append(TRACES, [_trace(row, trace, number) for number in numbers])
        database.append(TURNS, [turn | {"run_id": f"r-{number}"} for number in numbers for turn in turns])
        database.append(RUNS, [run_row(_run(head, number)) for number in numbers])
    for spec in (TRACES, RUNS, TURNS):
        database.tidy(spec)
    return workspace


def _trace(row: dict[str, Any], trace: Trace, number: int) -> dict[str, Any]:
    own = msgspec.structs.replace(trace, trace_id=f"t-{number}", question_id=f"q{number}")
    names = {"trace_id": own.trace_id, "question_id": own.question_id, "name": f"{number}.json", "body": msgspec.msgpack.encode(own)}
    return row | names


def _run(head: RunInfo, number: int) -> RunInfo:
    return msgspec.structs.replace(head, run_id=f"r-{number}", trace_id=f"t-{number}", question_id=f"q{number}")


def queries(workspace: Workspace, count: int) -> dict[str, float]:
    """Seconds of the queries behind lists of traces and runs."""
    some = f"t-{count // 2}"
    asked: dict[str, Callable[[], object]] = {
        "listed": lambda: listed(workspace),
        "searched": lambda: listed(workspace, Filters(words=f"{count // 2}.json").where),
        "filtered": lambda: listed(workspace, Filters(turns=(5, 50), reward="not recorded").where),
        "one_trace": lambda: workspace.trace(some),
        "runs_of_a_trace": lambda: RunStore(workspace).heads(trace_id=some),
    }
    seconds = {}
    for key, ask in asked.items():
        ask()
        seconds[key] = statistics.median(_timed(ask) for _ in range(VISITS))
    return seconds


def pages(workspace: Workspace, count: int) -> tuple[dict[str, float], int]:
    """Seconds of each page, and the largest memory of the server in bytes."""
    seconds: dict[str, float] = {}
    with chromium() as page, serving(workspace.path) as (address, server):
        page.goto(f"{address}/published")
        page.locator(CHART).first.wait_for()
        most = 0
        for name, (path, mark) in PAGES.items():
            where = address + path.format(middle=count // 2)

            def visit(where: str = where, mark: str = mark) -> None:
                page.goto(where)
                if mark:
                    page.locator(mark).first.wait_for()
                else:
                    page.wait_for_function(SETTLED)

            visit()
            page.wait_for_function(SETTLED)
            seconds[name] = statistics.median(_settled(page, visit) for _ in range(VISITS))
            most = max(most, _memory(server))
    return seconds, most


def _settled(page: Any, visit: Callable[[], None]) -> float:
    taken = _timed(visit)
    page.wait_for_function(SETTLED)
    return taken


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _memory(server: psutil.Process) -> int:
    return int(server.memory_info().rss)


def compare(folder: Path, sizes: Sequence[int]) -> tuple[dict[str, float], dict[str, Any]]:
    """Ratios of the largest size over the smallest, and the figures of each."""
    details: dict[str, Any] = {}
    for count in sizes:
        workspace = make(folder / f"catalogue-{count}", count)
        asked = queries(workspace, count)
        opened, memory = pages(workspace, count)
        details[str(count)] = {"queries": asked, "pages": opened, "server_memory_mb": round(memory / 1e6)}
    small, large = details[str(min(sizes))], details[str(max(sizes))]
    ratios = {f"{kind}_{name}_vs_small": large[kind][name] / small[kind][name] for kind in ("pages", "queries") for name in small[kind]}
    return ratios | {"server_memory_vs_small": large["server_memory_mb"] / small["server_memory_mb"]}, details
