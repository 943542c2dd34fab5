"""`pamer-lab bench pages`: speed and memory of the dashboard, against an empty Streamlit page in the same Chromium and run.

A workspace of 52 traces under 5 policies (260 runs of 256 turns; those of the opened trace are real) and a trace of 2,000 turns and
50 MB. Times are wall-clock from the request to the first chart on the page; each is divided by its limit, so that 1 is the maximum.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pamer_lab.bench.measure import messages
from pamer_lab.bench.replay import KeptVotes, make_trace
from pamer_lab.bench.server import chromium, serving
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.factory import Parts
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.values import Run
from pamer_lab.trajectory.values import Source, Trace
from pamer_lab.workspace import TRACES, Workspace, trace_row

HELP = "each page's first chart, a turn change, a trace of 50 MB and page memory, in Chromium, against an empty Streamlit page"
POLICIES = ("base", "sliding-window:5", "periodic-summary:5", "pamer", "pamer+")
COPIES, TURNS, TOKENS = 52, 256, 20_000
LONG_TURNS, LONG_WORDS = 2_000, 3_300
"""About 50 MB of messages."""
CHART = ".js-plotly-plot .main-svg"
TABLE = '[data-testid="stDataFrame"] canvas'
PAGES = {
    "traces": ("/", TABLE),
    "transcript": ("/trace?trace=t-bench-0", CHART),
    "replay": ("/replay?trace=t-bench-0", CHART),
    "growth": ("/growth", CHART),
    "signals": ("/signals", CHART),
    "contexts": ("/contexts", CHART),
    "audit": ("/audit", TABLE),
    "published": ("/published", CHART),
}
"""Page -> its address and the element to wait for: its first chart, or the table of a page without charts."""
EMPTY = """import streamlit as st

st.title("Empty")
st.session_state["n"] = st.session_state.get("n", 0) + st.button("Again")
st.text(f"n = {st.session_state['n']}")
"""
STEPS = 12
"""Timed turn changes; three times as many follow, which measure memory growth."""
MARKED = "at => [...document.querySelectorAll('.pamer-mark')].filter(mark => mark.dataset.at === at).length === 3"
"""The open turn is marked in all charts of the replay page."""
SETTLED = "document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"


def run() -> tuple[dict[str, float], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        workspace = make_workspace(folder / "workspace")
        made = time.perf_counter() - began
        script = folder / "empty.py"
        script.write_text(EMPTY)
        ratios, details = measure(script, workspace.path)
    return ratios, details | {"workspace_seconds": made, "runs": COPIES * len(POLICIES), "turns": TURNS}


def measure(script: Path, workspace: Path) -> tuple[dict[str, float], dict[str, Any]]:
    """All figures, with one Chromium; `script` is the empty page."""
    with chromium() as page:
        with serving(workspace.parent / "none", script) as (address, _):
            empty, rerun = _empty(page, address)
        with serving(workspace) as (address, _):
            first, again, whole = _pages(page, address)
            turn, memory = _turns(page, address)
            bodies, opened = _long(page, address)
    limit, turn_limit = 3 * empty + 2.0, 0.3 + rerun
    ratios: dict[str, float] = {f"{name}_vs_limit": seconds / limit for name, seconds in first.items()}
    ratios |= {"turn_change_vs_limit": turn / turn_limit, "long_trace_bodies": float(bodies)} | memory
    details = {
        "empty_page_seconds": empty,
        "empty_rerun_seconds": rerun,
        "limit_seconds": limit,
        "turn_limit_seconds": turn_limit,
        "first_visit_seconds": first,
        "second_visit_seconds": again,
        "whole_page_seconds": whole,
        "turn_change_seconds": turn,
        "long_trace_seconds": opened,
    }
    return ratios, details


def make_workspace(path: Path) -> Workspace:
    """260 runs, and the long trace: one trace is really replayed, and its runs are stored again under the names of the others."""
    workspace = Workspace(path)
    tokens = profile_tokens(load_profile("embedded"))
    trace = msgspec.structs.replace(make_trace(TURNS, TOKENS), trace_id="t-bench-0", question_id="q-0")
    _add_traces(workspace, trace, tokens)
    parts = Parts(ExtractiveSummariser(tokens.counter), HashingEmbedder(), KeptVotes())
    runs = [replay(trace.trace_id, policy, workspace, ReplayOptions(parts=parts)) for policy in POLICIES]
    store = RunStore(workspace)
    for number in range(1, COPIES):
        for run in runs:
            _copy(store, run, number)
    store.tidy()
    long = Trace("t-long", "q-long", "bench", tuple(messages(LONG_TURNS, words=LONG_WORDS)), source=Source("z-long.json"))
    workspace.add_traces([long], MessageTokens(EstimatedCounter()))
    return workspace


def _add_traces(workspace: Workspace, trace: Trace, tokens: MessageTokens) -> None:
    row = trace_row(trace, tokens)
    rows = []
    for number in range(COPIES):
        own = msgspec.structs.replace(trace, trace_id=f"t-bench-{number}", question_id=f"q-{number}")
        rows.append(
            row | {"trace_id": own.trace_id, "question_id": own.question_id, "name": own.trace_id, "body": msgspec.msgpack.encode(own)}
        )
    workspace.database.upsert(TRACES, rows)


def _copy(store: RunStore, run: Run, number: int) -> None:
    head = msgspec.structs.replace(run.head, run_id=f"{run.head.run_id}-{number}", trace_id=f"t-bench-{number}", question_id=f"q-{number}")
    store.put_head(head)
    store.add_turns(head.run_id, run.turns)


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _empty(page: Any, address: str) -> tuple[float, float]:
    """Seconds to open the empty page and to run it again; medians, after a first visit that fills the browser's cache."""

    def visit() -> None:
        page.goto(address)
        page.get_by_text("n = ").wait_for()

    def again() -> None:
        text = page.get_by_test_id("stText").inner_text()
        page.get_by_role("button", name="Again").click()
        page.wait_for_function("was => document.querySelector('[data-testid=stText]')?.innerText !== was", arg=text)
        page.wait_for_function(SETTLED)

    visit()
    opened = statistics.median(_timed(visit) for _ in range(5))
    page.wait_for_function(SETTLED)
    return opened, statistics.median(_timed(again) for _ in range(STEPS))


def _pages(page: Any, address: str) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Seconds to the first chart on the first and second visit, and until the page is complete on the second.

    Plotly itself is already in the browser's cache.
    """
    page.goto(f"{address}/published")
    page.locator(CHART).first.wait_for()
    page.wait_for_function(SETTLED)
    first: dict[str, float] = {}
    again: dict[str, float] = {}
    whole: dict[str, float] = {}
    for seconds in (first, again):
        for name, (path, mark) in PAGES.items():
            began = time.perf_counter()
            page.goto(address + path)
            page.locator(mark).first.wait_for()
            seconds[name] = time.perf_counter() - began
            page.wait_for_function(SETTLED)
            whole[name] = time.perf_counter() - began
    return first, again, whole


def _turns(page: Any, address: str) -> tuple[float, dict[str, float]]:
    """The median turn change on the replay page, and how much the page's memory grows over many of them."""
    page.goto(f"{address}/replay?trace=t-bench-0&policy=pamer&turn=20")
    box = page.get_by_label(f"Turn, 0 to {TURNS - 1}")
    box.wait_for()
    page.wait_for_function(SETTLED)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    turn = 20

    def step() -> None:
        nonlocal turn
        turn += 1
        page.keyboard.press("Alt+ArrowRight")
        page.wait_for_function(f"document.querySelector('input[aria-label=\"Turn, 0 to {TURNS - 1}\"]')?.value === '{turn}'")
        page.wait_for_function(MARKED, arg=str(turn))
        page.wait_for_function(SETTLED)

    seconds = statistics.median(_timed(step) for _ in range(STEPS))
    before = _page_memory(session)
    for _ in range(3 * STEPS):
        step()
    after = _page_memory(session)
    return seconds, {f"{name}_after_{3 * STEPS}_turns": after[name] / before[name] for name in before}


def _page_memory(session: Any) -> dict[str, float]:
    session.send("HeapProfiler.collectGarbage")
    found = {entry["name"]: float(entry["value"]) for entry in session.send("Performance.getMetrics")["metrics"]}
    return {"heap": found["JSHeapUsedSize"], "nodes": found["Nodes"]}


def _long(page: Any, address: str) -> tuple[int, float]:
    """Message bodies on the page of the long trace, and the seconds until its chart is drawn."""

    def visit() -> None:
        page.goto(f"{address}/trace?trace=t-long&block=1000")
        page.locator(CHART).first.wait_for()

    seconds = _timed(visit)
    page.wait_for_function(SETTLED)
    return page.get_by_test_id("stCode").count(), seconds
