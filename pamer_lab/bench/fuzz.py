"""`pamer-lab bench fuzz`: mutated traces, run files, review files, profiles and links. Each must give a result or one sentence.

Each case may take two seconds of processor time, and 300 MB plus ten times its size in memory; a traceback, a freeze or more memory is a
failure. A `LabError` such as `InputError` is what a user should get, so it is not a failure.
"""

import io
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import polars as pl

from pamer_lab.audit.exchange import audit_rows
from pamer_lab.audit.offline import read_reviews
from pamer_lab.audit.tables import REVIEWS, SELECTIONS
from pamer_lab.bench.measure import fresh_peak, own_peak, say
from pamer_lab.bench.mutations import mutated_bytes, mutated_json, mutated_tables, mutated_text
from pamer_lab.config import WORKSPACE_VARIABLE, app_folder
from pamer_lab.errors import InputError, LabError
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policies
from pamer_lab.runs.bundle import checked_tables
from pamer_lab.runs.samples import SAMPLE_RUNS, import_sample_runs
from pamer_lab.studies.compact.registry import parse_caps
from pamer_lab.trajectory import read_bytes
from pamer_lab.trajectory.parsing import parse_text
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.ingest import import_demo

HELP = "10,000 mutated traces, run files, review files, profiles and links: tracebacks, freezes and memory (none may fail)"
CASES = 10_000
SHARES = {"traces": 0.55, "run files": 0.2, "review files": 0.12, "profiles": 0.05, "links": 0.06, "pages": 0.02}
"""Share of the cases for each target; `pages` are links that are opened in the dashboard's pages."""
MAX_SEED_BYTES = 150_000
"""Larger seed files are cut to complete records, so that a case stays fast."""
MOST_SECONDS = 2.0
MOST_MEMORY, MEMORY_TIMES = 300_000_000, 10
LINKS = (
    "trace=t-0123456789abcdef&turn=3&policy=pamer",
    "trace=t-0123456789abcdef&policies=base,sliding-window:5,pamer%2B&block=7&hit=2",
    "traces=t-1,t-2&run=r-1&selection=a-1&seed=0&layer=12&pooling=mean",
    "point=3&left=full&right=recent&caps=8K,16K&table=main",
)
"""Links as pages write them."""
PAGES = ("traces", "trace", "replay", "growth", "signals", "contexts", "audit", "published")
PROFILE = """base = "embedded"
name = "mine"
[chat]
kind = "openai"
model = "m"
base_url = "http://127.0.0.1:1/v1"
api_key_env = "MY_API_KEY"
attempts = 1
"""


@dataclass
class Outcome:
    """The result of the cases."""

    counts: Counter[str] = field(default_factory=Counter)
    """`target: how it ended` -> cases."""
    failures: list[str] = field(default_factory=list)
    """Target, number and fault of each failed case, so that it can be repeated."""
    slowest: float = 0.0
    """Seconds of processor time of the slowest case."""
    memory: float = 0.0
    """The largest share of its memory allowance that a case took."""

    def failed(self, word: str) -> int:
        return sum(word in failure for failure in self.failures)


Target = Callable[[random.Random, int], tuple[int, Callable[[], Any]]]
"""Makes a case: its size in bytes, and the call that reads it. Making it is not measured."""


def run(cases: int = CASES) -> tuple[dict[str, float], dict[str, Any]]:
    seeds = list(seed_files(app_folder() / "sample_traces")) + list(seed_files(Path("../shared/traces/open")))
    with tempfile.TemporaryDirectory() as name:
        outcome = fuzz(targets(seeds, Path(name)), cases)
    ratios = {
        "cases": float(cases),
        "tracebacks": float(outcome.failed("traceback")),
        "freezes": float(outcome.failed("freeze")),
        "over_memory": float(outcome.failed("memory")),
        "slowest_of_limit": outcome.slowest / MOST_SECONDS,
        "memory_of_limit": outcome.memory,
    }
    return ratios, {"seeds": len(seeds), "outcomes": dict(outcome.counts), "failures": outcome.failures[:50]}


def seed_files(folder: Path) -> Iterator[bytes]:
    """Trace files below a folder, as bytes, each small enough to be mutated often."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if path.is_file() and path.suffix in (".json", ".jsonl", ".traj", ".af", ".har"):
            data = path.read_bytes()
            if len(data) > MAX_SEED_BYTES:
                data = data[: max(data.rfind(b"\n", 0, MAX_SEED_BYTES), 0)]
            if data and _is_whole(data):
                yield data


def _is_whole(data: bytes) -> bool:
    """Whether a file is JSON, and was cut between records rather than inside a value that spans several lines."""
    try:
        return bool(parse_text(data, 100_000).records)
    except InputError:
        return False


def targets(seeds: list[bytes], folder: Path, names: tuple[str, ...] = tuple(SHARES)) -> dict[str, Target]:
    """What is fuzzed, by name; `pages` creates a workspace in the folder."""
    runs = [path.read_bytes() for path in sorted(SAMPLE_RUNS.glob("*.runs"))]
    reviews = _review_files()

    def traces(rng: random.Random, number: int) -> tuple[int, Callable[[], Any]]:
        data = mutated_json(seeds[number % len(seeds)], rng)
        return len(data), lambda: "rejected" if read_bytes(data, f"mutant-{number}").rejected else "read"

    def run_files(rng: random.Random, number: int) -> tuple[int, Callable[[], Any]]:
        data = mutated_tables(runs[number % len(runs)], rng)
        return len(data), lambda: checked_tables(data, "mutant.runs")

    def review_files(rng: random.Random, number: int) -> tuple[int, Callable[[], Any]]:
        ending = ".parquet" if number % 40 == 39 else (".json", ".jsonl", ".csv")[number % 3]
        data = (mutated_json if ending.startswith(".json") else mutated_bytes)(reviews[ending], rng)
        source = Path(f"mutant{ending}")
        return len(data), lambda: read_reviews(source, data) if ending == ".json" else audit_rows(source, data)

    def profiles(rng: random.Random, number: int) -> tuple[int, Callable[[], Any]]:
        path = folder / "mutant.toml"
        text = PROFILE if rng.random() < 0.5 else _odd_profile(rng)
        path.write_bytes(text.encode() if rng.random() < 0.3 else mutated_bytes(text.encode(), rng))
        return path.stat().st_size, lambda: load_profile(path)

    def links(rng: random.Random, number: int) -> tuple[int, Callable[[], Any]]:
        asked = _link(rng)
        return len(str(asked)), lambda: [_read_value(name, value) for name, value in asked.items()]

    made: dict[str, Target] = {
        "traces": traces,
        "run files": run_files,
        "review files": review_files,
        "profiles": profiles,
        "links": links,
    }
    if "pages" in names:
        made["pages"] = _pages(folder)
    return {name: made[name] for name in names}


def fuzz(made: Mapping[str, Target], cases: int, *, seed: int = 0) -> Outcome:
    """Run the cases of each target, in their shares."""
    outcome = Outcome()
    total = sum(SHARES[name] for name in made)
    for name, target in made.items():
        for number in range(max(1, round(cases * SHARES[name] / total))):
            rng = random.Random(f"{seed}/{name}/{number}")  # noqa: S311 - mutations, not secrets
            _one(outcome, name, number, *target(rng, number))
        say(f"{name}: {dict(outcome.counts)}, {len(outcome.failures)} failures")
    return outcome


def _one(outcome: Outcome, name: str, number: int, size: int, call: Callable[[], Any]) -> None:
    before = fresh_peak()
    began = time.process_time()
    try:
        ended = "rejected" if call() == "rejected" else "read"
    except LabError:
        ended = "rejected"
    except Exception as error:  # what the bench looks for
        ended = "traceback"
        outcome.failures.append(f"{name} {number}: traceback: {type(error).__name__}: {str(error)[:160]}")
    seconds = time.process_time() - began
    memory = max(own_peak() - before, 0) / (MOST_MEMORY + MEMORY_TIMES * size)
    outcome.counts[f"{name}: {ended}"] += 1
    outcome.slowest, outcome.memory = max(outcome.slowest, seconds), max(outcome.memory, memory)
    if seconds > MOST_SECONDS:
        outcome.failures.append(f"{name} {number}: freeze: {seconds:.1f} s for {size:,} bytes")
    if memory > 1:
        outcome.failures.append(f"{name} {number}: memory: {memory:.1f} times its allowance, {size:,} bytes")


def _review_files() -> dict[str, bytes]:
    """One small file of each ending, with rows as exports write them."""
    empty = dict.fromkeys([*SELECTIONS.schema.names, *REVIEWS.schema.names])
    selection = empty | {"table": "selection", "audit_id": "a", "run_id": "r", "turn": "3", "outcome": "selected", "steps": "[1, 2]"}
    selection |= {"created_at": "2026-01-01T00:00:00+00:00", "candidates": '[{"memory_id": "m", "step": 1, "score": 0.5, "rank": 0}]'}
    review = empty | {"table": "review", "audit_id": "a", "reviewer": "ada", "revision": "0", "verdict": "right", "steps": "[1]"}
    review |= {"created_at": "2026-01-02T00:00:00+00:00", "note": 'a "note",\nwith lines'}
    rows = [selection, review] * 5
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    one = {"audit_id": "a", "reviewer": "ada", "verdict": "right", "steps": [1], "note": "n", "created_at": "2026-01-02T00:00:00+00:00"}
    page = {"format": "pamer-lab-reviews", "version": 1, "report_id": "x", "exported_at": "2026-01-02", "reviews": [one] * 5}
    return {
        ".csv": frame.write_csv().encode(),
        ".jsonl": "\n".join(json.dumps(row) for row in rows).encode(),
        ".parquet": parquet.getvalue(),
        ".json": json.dumps(page).encode(),
    }


def _odd_profile(rng: random.Random) -> str:
    """The profile with one odd value."""
    lines = PROFILE.splitlines()
    number = rng.randrange(len(lines))
    key = lines[number].partition(" = ")[0]
    odd = ("-1", "1e999", '""', "[]", "{}", "true", "9" * 4_000, "[[" * 400 + "]]" * 400, '"' + "a@" * 3_000 + '"', "1979-05-27", "nan")
    lines[number] = f"{key} = {rng.choice(odd)}" if not key.startswith("[") else "[" + "a." * 300 + "b]"
    return "\n".join(lines)


def _link(rng: random.Random) -> dict[str, str]:
    asked = dict(parse_qsl(rng.choice(LINKS)))
    name = rng.choice(list(asked))
    return asked | {name: mutated_text(asked[name], rng)}


def _read_value(name: str, value: str) -> Any:
    """Parse a link's value with the function that reads it, without a page."""
    with suppress(LabError):
        return parse_caps(value) if name == "caps" else parse_policies(value)


def _pages(folder: Path) -> Target:
    """Links that are opened in the pages, over a workspace with the sample runs."""
    import os

    from streamlit.testing.v1 import AppTest

    workspace = Workspace(folder / "workspace")
    import_demo(workspace)
    import_sample_runs(workspace)
    os.environ[WORKSPACE_VARIABLE] = str(workspace.path)
    known = [row["trace_id"] for row in workspace.trace_rows()]

    def opened(name: str) -> AppTest:
        app = AppTest.from_file(str(app_folder() / "app.py"), default_timeout=120)
        app.run()
        return app if name == "traces" else app.switch_page(f"pages/{name}.py")

    for name in PAGES:
        opened(name).run()  # a first visit imports and fills caches

    def page(rng: random.Random, number: int) -> tuple[int, Callable[[], Any]]:
        name = PAGES[number % len(PAGES)]
        app = opened(name)
        asked = _link(rng)
        if "trace" in asked and rng.random() < 0.7:
            asked["trace"] = rng.choice(known)
        app.query_params.update(asked)

        def visit() -> None:
            app.run()
            if app.exception:
                raise RuntimeError(f"{name}?{asked}"[:200] + f": {app.exception[0].message}")

        return len(str(asked)), visit

    return page
