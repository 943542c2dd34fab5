"""`bench load`: many people on one dashboard, and many processes on one store.

A separate dashboard on a free loopback port has the demo traces, replayed. First one visitor acts alone, then many, each over a
websocket session of their own. Every few seconds they read a transcript or a replay, or give a verdict under their own name. Every
verdict whose rerun finished must be in the store afterwards. `run` uses 25 visitors for two minutes; the test suite uses a few for
seconds.
"""

import asyncio
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from pamer_lab.audit import AuditStore, ReviewStore
from pamer_lab.bench.crash import compress_at_once
from pamer_lab.bench.server import DashboardVisitor, Drawn, serving
from pamer_lab.controller import FixedProbe
from pamer_lab.errors import LabError
from pamer_lab.factory import Parts
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo

HELP = "25 websocket sessions on one dashboard for two minutes; 8 processes compressing in one store"
SESSIONS, EVERY_SECONDS, LAST_SECONDS = 25, 5.0, 120.0
ALONE_ACTIONS = 40
POLICIES = ("base", "pamer+:minimum=300")
ROUND = ("audit", "name", "verdict", "verdict", "verdict", "transcript", "replay", "traces")
"""What a visitor does, again and again."""
NAME = "Your name"
BEGINNINGS = (0, 5, 6, 7)
"""Where in the round a visitor may begin: at a step that opens a page."""


@dataclass
class Told:
    """What the visitors saw."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    reviews: Counter[str] = field(default_factory=Counter)
    """Reviewer -> verdicts whose rerun finished."""

    def add(self, drawn: Drawn) -> None:
        self.seconds.append(drawn.seconds)
        self.errors += drawn.errors

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.seconds, n=20)[-1]


def run(
    sessions: int = SESSIONS,
    seconds: float = LAST_SECONDS,
    every: float = EVERY_SECONDS,
    alone_actions: int = ALONE_ACTIONS,
    *,
    least_actions: int = 0,
    processes: int = 8,
    turns: int = 40,
) -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        lab = Workspace(Path(folder) / "workspace")
        traces = prepared(lab)
        with serving(lab.path) as (address, server):
            _run(_alone(address, traces, len(ROUND), Told()))  # warms every page's cache
            one, before = Told(), _cpu_seconds(server)
            _run(_alone(address, traces, alone_actions, one))
            busy = _cpu_seconds(server) - before
            many = Told()
            memory: list[int] = []
            _run(_together(address, traces, many, memory, server, sessions, seconds, every, least_actions))
        kept = Counter(review.reviewer for review in ReviewStore(lab.database).all())
        said = one.reviews + many.reviews
        lost = sum((said - kept).values())
    compressed = compress_at_once(processes, turns)
    third = max(1, len(memory) // 6)
    middle, end = memory[len(memory) // 2 : len(memory) // 2 + third], memory[-third:]
    ratios = {
        "sessions": sessions,
        "errors": len(one.errors) + len(many.errors),
        "lost_reviews": lost,
        "p95_vs_single": many.p95 / one.p95,
        "memory_growth": statistics.mean(end) / statistics.mean(middle) - 1,
        "memories_lost": compressed["lost"],
        "memories_doubled": compressed["doubled"],
    }
    details = {
        "actions": len(many.seconds),
        "reviews": sum(said.values()),
        "single_p95_seconds": one.p95,
        "single_median_seconds": statistics.median(one.seconds),
        "server_cpu_seconds_per_rerun": busy / len(one.seconds),
        "load_p95_seconds": many.p95,
        "load_median_seconds": statistics.median(many.seconds),
        "memory_mb": {"middle": round(statistics.mean(middle) / 1e6), "end": round(statistics.mean(end) / 1e6)},
        "machine_load": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "first_errors": (one.errors + many.errors)[:5],
        "compressing": compressed,
    }
    return ratios, details


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run it on a separate event loop, even if this thread already has one (as in a browser test)."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(asyncio.run, work).result()


def prepared(lab: Workspace) -> list[str]:
    """The demo traces, replayed with parts that need no weights; returns their ids."""
    import_demo(lab)
    options = ReplayOptions(device="cpu", parts=Parts(embedder=HashingEmbedder(64), probe=FixedProbe()))
    names = [str(row["trace_id"]) for row in lab.trace_rows()]
    for name in names:
        for policy in POLICIES:
            replay(lab.trace(name).trace, policy, lab, options)
    if not AuditStore(lab.database).rows():
        raise LabError("the demo traces gave no selection to review")
    return names


def _cpu_seconds(server: psutil.Process) -> float:
    """Processor seconds of the server so far, which other programs on the machine do not affect."""
    times = server.cpu_times()
    return float(times.user + times.system)


async def _act(visitor: DashboardVisitor, traces: Sequence[str], number: int, reviewer: str, told: Told) -> None:
    """The next action of a visitor: one rerun."""
    trace = traces[number % len(traces)]
    match ROUND[number % len(ROUND)]:
        case "audit":
            told.add(await visitor.open("audit"))
        case "name" if visitor.shows("text_input", NAME):
            told.add(await visitor.fill(NAME, reviewer))
        case "name":  # the session remembers it
            told.add(await visitor.open("audit"))
        case "verdict":
            told.add(await visitor.click("Right"))
            told.reviews[reviewer] += 1
        case "transcript":
            told.add(await visitor.open("trace", f"trace={trace}&turn={number % 7}"))
        case "replay":
            told.add(await visitor.open("replay", f"trace={trace}&policies={POLICIES[1]}&turn={number % 7}"))
        case "traces":
            told.add(await visitor.open(""))


async def _alone(address: str, traces: Sequence[str], actions: int, told: Told) -> None:
    async with DashboardVisitor(address) as visitor:
        for number in range(actions):
            await _act(visitor, traces, number, "alone", told)
            await asyncio.sleep(0.1)


async def _person(address: str, traces: Sequence[str], told: Told, place: int, begin: float, end: float, every: float, least: int) -> None:
    """One session: begins at its own moment and acts until the end, or on a slow machine until it has acted `least` times."""
    await asyncio.sleep(begin)
    async with DashboardVisitor(address) as visitor:
        number = first = BEGINNINGS[place % len(BEGINNINGS)]
        while (now := time.monotonic()) < end or number - first < least:
            try:
                await _act(visitor, traces, number, f"reviewer {place}", told)
            except Exception as error:
                told.errors.append(f"{type(error).__name__}: {error}")
            number += 1
            await asyncio.sleep(max(0.0, every - (time.monotonic() - now)))


async def _together(
    address: str,
    traces: Sequence[str],
    told: Told,
    memory: list[int],
    server: psutil.Process,
    sessions: int,
    seconds: float,
    every: float,
    least: int,
) -> None:
    chance = random.Random(0)  # noqa: S311
    end = time.monotonic() + seconds

    async def gauge() -> None:
        while time.monotonic() < end:
            memory.append(server.memory_info().rss)
            await asyncio.sleep(min(1.0, seconds / 30))

    people = [_person(address, traces, told, place, chance.uniform(0, every), end, every, least) for place in range(sessions)]
    await asyncio.gather(gauge(), *people)
