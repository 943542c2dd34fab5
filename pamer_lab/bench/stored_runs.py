"""Queries of stored runs: what-if over 1,000 turns, and the per-turn mean table over 260 runs; part of `pamer-lab bench replay`."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pamer_lab.analysis.growth import mean_context, run_table, turn_table
from pamer_lab.decisions import Item
from pamer_lab.policies.registry import DEFAULT_POLICIES
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import Run, RunInfo, Turn
from pamer_lab.runs.whatif import Changes, WhatIfRun
from pamer_lab.workspace import Workspace

WHATIF_TURNS = 1_000
TURNS, RUNS = 256, 260
"""Size of the mean table."""


def what_if() -> tuple[dict[str, float], dict[str, Any]]:
    """Milliseconds of one what-if question about a run of 1,000 turns."""
    run = what_if_run(WHATIF_TURNS)
    laid_out: WhatIfRun | None = None

    def lay_out() -> None:
        nonlocal laid_out
        laid_out = WhatIfRun(run)

    layout = _milliseconds(lay_out)
    if laid_out is None:
        raise AssertionError("laid out above")
    ready = laid_out
    asked = _milliseconds(lambda: ready.ask(Changes(vote=2, threshold_scale=1.1, minimum=2048)))
    matches, of = ready.verified
    return {"whatif_ms_1000_turns": asked}, {"whatif": {"turns": WHATIF_TURNS, "layout_ms": layout, "verified": f"{matches} of {of}"}}


def what_if_run(count: int) -> Run:
    """A PaMER run of `count` turns, with decisions that follow its rule."""
    chance = np.random.default_rng(0)
    sizes = chance.integers(200, 1500, count)
    sums = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    logits = chance.normal(size=(count, 5))
    votes = 1 / (1 + np.exp(-logits)) >= 0.5
    turns: list[Turn] = []
    covered = 0
    for t in range(count):
        window = max(t - 2, 0)
        candidate = sums[window] - sums[covered]
        fires = candidate >= 1024 and int(votes[t].sum()) >= 3
        covered = window if fires else covered
        recalls = bool(covered) and not fires
        turns.append(
            Turn(
                t=t,
                action="compress" if fires else "recall" if recalls else "pass",
                reason="made",
                raw_tokens=sums[t],
                active_tokens=sums[t] - sums[covered] + 900 * recalls,
                candidate_tokens=candidate,
                output_tokens=10,
                cached_tokens=0,
                states="S" * covered + "A" * (t - covered),
                items=(Item("recalled", 900, ((0, covered),), "m", "text"),) if recalls else (),
                stored=((0, covered),) if covered else (),
                logits=tuple(logits[t].tolist()),
                thresholds=(0.5,) * 5,
                votes=tuple(votes[t].tolist()),
            )
        )
    rule = {"retained": 2, "vote": 3, "minimum": 1024, "top": 3, "recalls": "summaries", "compresses": True}
    head = _head("r-what-if", "pamer", count, tuple(sizes.tolist()), {"rule": rule})
    return Run(head, tuple(turns))


def mean_table(folder: Path) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds from stored rows to the table, in a process that has not read them before."""
    workspace = Workspace(folder / "many")
    store = RunStore(workspace)
    pattern = what_if_run(TURNS)
    for number in range(RUNS):
        head = _head(
            f"r-{number:04d}", DEFAULT_POLICIES[number % len(DEFAULT_POLICIES)], TURNS, pattern.head.block_tokens, {}, status="done"
        )
        store.put_head(head)
        store.add_turns(head.run_id, pattern.turns)
    store.tidy()
    fresh = Workspace(workspace.path)
    began = time.perf_counter()
    runs = run_table(fresh)
    turns = turn_table(fresh, runs)
    table = mean_context(turns)
    seconds = time.perf_counter() - began
    if table["running"].sum() != RUNS * TURNS:
        raise AssertionError("the table does not hold every turn")
    return {"mean_table_seconds": seconds}, {"mean_table_rows": turns.height}


def _head(run_id: str, policy: str, turns: int, sizes: tuple[int, ...], settings: dict[str, Any], status: Any = "running") -> RunInfo:
    return RunInfo(
        run_id=run_id,
        trace_id=f"t-{run_id}",
        question_id=f"q-{run_id}",
        task_id="",
        policy=policy,
        profile="embedded",
        settings=settings,
        tokenizer="made",
        tokens_kind="estimated",
        turns=turns,
        trace_turns=turns,
        prefix_tokens=0,
        tools_tokens=0,
        block_tokens=sizes,
        status=status,
    )


def _milliseconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(9):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)
