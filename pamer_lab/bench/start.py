"""`pamer-lab bench start`: start-up time of the program, against a Python and a page that do nothing.

Commands are timed in processor seconds of fresh processes, the shortest of several alternating rounds, so that other programs do not
count. The first page is timed by the browser's clock, from the first visit to a fresh server in a fresh Chromium to the first chart or
table, relative to an otherwise empty Streamlit page with one chart: medians of several starts of both. A second ratio begins at the start
of the server, and so includes the work done before it answers.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

HELP = "time of `--help`, every `COMMAND --help` and `import pamer_lab` against `python -c pass`; of the first page against an empty one"
ROUNDS = 5
STARTS = 5
"""Number of servers started of each kind."""
SHOWN = """new MutationObserver((_, observer) => {
    if (!document.querySelector(`%s`)) return;
    window.shownAt = performance.now();
    observer.disconnect();
}).observe(document, {childList: true, subtree: true});"""
"""Records when an element appears on the page; Playwright checks twice a second, and would be up to half a second late."""
CHARTED = """import plotly.graph_objects as go
import streamlit as st

st.title("Empty")
st.plotly_chart(go.Figure(go.Scatter(y=[1, 2, 3])))
"""
Measured = tuple[dict[str, float], dict[str, Any]]
"""Ratios, and the figures behind them."""
PASS = ("-c", "pass")
WAYS: dict[str, tuple[str, ...]] = {"pass": PASS, "help": ("-m", "pamer_lab.cli", "--help"), "import": ("-c", "import pamer_lab")}


def run(parts: Sequence[str] = ()) -> Measured:
    """`parts`: run only these."""
    ratios: dict[str, float] = {}
    details: dict[str, Any] = {}
    for name, measure in PARTS.items():
        if not parts or name in parts:
            found, facts = measure()
            ratios, details = ratios | found, details | facts
    return ratios, details


def commands() -> Measured:
    """Processor time of help texts and of the import, over that of a Python that does nothing."""
    from pamer_lab.commands.options import COMMANDS

    ways = WAYS | {f"{name} --help": ("-m", "pamer_lab.cli", name, "--help") for name in COMMANDS}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, words in ways.items():
            times[name].append(processor_seconds(words))
    best = {name: min(found) for name, found in times.items()}
    helps = {name: seconds / best["pass"] for name, seconds in best.items() if name not in WAYS}
    slowest = max(helps, key=lambda name: helps[name])
    ratios = {
        "help_vs_python": best["help"] / best["pass"],
        "command_help_vs_python": helps[slowest],
        "import_vs_python": best["import"] / best["pass"],
    }
    return ratios, {"cpu_seconds": best, "slowest_command": slowest, "rounds": ROUNDS}


def page() -> Measured:
    """Time of the first visit, without and with the start of the server, over that of an empty page."""
    home, empty = first_pages()
    ratios = {
        "first_page_vs_empty_page": _median(home, "page") / _median(empty, "page"),
        "start_to_first_page_vs_empty_page": _median(home, "start", "page") / _median(empty, "start", "page"),
    }
    return ratios, {"first_page_seconds": home, "empty_page_seconds": empty}


PARTS: Mapping[str, Callable[[], Measured]] = {"commands": commands, "page": page}
"""The names that `--part` accepts."""


def _median(visits: Sequence[Mapping[str, float]], *parts: str) -> float:
    return statistics.median(sum(visit[name] for name in parts) for visit in visits)


def first_pages() -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """Seconds of the first visits to fresh servers: the dashboard's, and an empty page's, in turns."""
    from pamer_lab.bench.server import APP

    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "empty.py"
        script.write_text(CHARTED)
        found = [
            (first_visit(Path(name) / f"home-{number}", APP), first_visit(Path(name) / f"empty-{number}", script))
            for number in range(STARTS)
        ]
    return [home for home, _ in found], [empty for _, empty in found]


def first_visit(workspace: Path, script: Path) -> dict[str, float]:
    """Seconds until a new server answers, and from a new browser's request to the first chart or table."""
    from pamer_lab.bench.pages import CHART, TABLE
    from pamer_lab.bench.server import chromium, serving

    with chromium() as page:
        page.add_init_script(SHOWN % f"{CHART}, {TABLE}")
        began = time.perf_counter()
        with serving(workspace, script) as (address, _):
            up = time.perf_counter()
            page.goto(address)
            milliseconds = page.wait_for_function("window.shownAt").json_value()
            return {"start": up - began, "page": milliseconds / 1000}


def processor_seconds(words: tuple[str, ...]) -> float:
    """User and system time of one fresh Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
