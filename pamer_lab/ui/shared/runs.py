"""Runs as pages read them, cached and bounded: run infos, complete runs, timelines, evidence, what-if, memories.

Caches are keyed by what changes a run (its id, status and stored turns), so that a growing run is read again and a finished one once.
Sessions share the values and never change them.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec
import polars as pl
import streamlit as st

from pamer_lab.analysis.growth import newest_runs, run_table, with_heads
from pamer_lab.aside import ask
from pamer_lab.errors import LabError, StorageError
from pamer_lab.figures.text import counted, one_line
from pamer_lab.memory.records import Memory
from pamer_lab.runs.background import Background
from pamer_lab.runs.drops import Drop, drops
from pamer_lab.runs.evidence import Fate, Use, Uses, fates, uses
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.timeline import Timeline, stored_timeline
from pamer_lab.runs.values import Run, RunInfo
from pamer_lab.runs.whatif import WhatIfRun, what_if
from pamer_lab.ui.shared.loaders import stored_trace, table_version, workspace
from pamer_lab.ui.shared.text import DEMO, counted_with
from pamer_lab.workspace import RUNS

MOST_RUNS = 10_000
"""Up to this many runs, pages read all runs of a workspace together; with more, only those of the traces that they show."""
LOOKED_HERE, MOST_SECONDS = 100_000_000, 20.0
"""Characters that a page searches for evidence itself (quickly), and seconds for the rest in a separate process."""


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(path: str) -> RunStore:
    return RunStore(workspace())


def run_store() -> RunStore:
    return _store(str(workspace().path))


@st.cache_resource(max_entries=4, show_spinner=False)
def _background(path: str) -> Background:
    return Background(Path(path))


def background() -> Background:
    """Replays in the background; one at a time for all sessions of this server."""
    return _background(str(workspace().path))


def version() -> tuple[int, int]:
    """Changes whenever a run is added, ends or is removed."""
    return table_version(RUNS)


@st.cache_resource(max_entries=64, show_spinner=False)
def _heads(path: str, at: tuple[int, int], trace_id: str) -> list[RunInfo]:
    return run_store().heads(trace_id=trace_id)


def run_heads(trace_id: str) -> list[RunInfo]:
    """Runs of a trace, oldest first."""
    at = version()
    return _heads(str(workspace().path), at, trace_id) if at[1] else []


@st.cache_resource(max_entries=24, show_spinner="Opening the runs…")
def _run(path: str, run_id: str, status: str, finished: str, stored: int, _load: Callable[[], dict[str, Run]]) -> Run:
    return _load()[run_id]


def open_runs(heads: Sequence[RunInfo]) -> list[Run]:
    """Runs with their turns, read together if one of them is not cached; a running one is read as far as it is stored."""

    @cache
    def load() -> dict[str, Run]:
        return {run.run_id: run for run in run_store().runs(heads)}

    path = str(workspace().path)
    stored = [head.turns if head.status == "done" else run_store().stored_count(head.run_id) for head in heads]
    return [_run(path, head.run_id, head.status, head.finished, count, load) for head, count in zip(heads, stored, strict=True)]


def open_run(head: RunInfo) -> Run:
    """One run with its turns."""
    return open_runs([head])[0]


def run_key(run: Run) -> tuple[str, str, str, int]:
    """Changes whenever what is drawn of a run does; run ids are unique within one workspace only."""
    return (str(workspace().path), run.run_id, run.head.finished, len(run.turns))


@st.cache_resource(max_entries=8, show_spinner=False)
def _timeline(path: str, trace_id: str, profile: str) -> tuple[Timeline, Uses]:
    stored, _ = stored_trace(trace_id)
    timeline = stored_timeline(stored, profile, workspace())
    found = uses(timeline, LOOKED_HERE)
    return timeline, found if found.stopped is None else _uses_aside(path, trace_id, profile, found)


def _uses_aside(path: str, trace_id: str, profile: str, found: Uses) -> Uses:
    """The uses in a trace that is too long to search here; those found so far if the search takes too long."""
    try:
        answer = ask("evidence", [path, trace_id, profile], FoundUses, seconds=MOST_SECONDS, what="Searching this trace for evidence")
    except LabError:
        return found
    more = Uses(answer.uses)
    more.stopped = answer.stopped
    return more


class FoundUses(msgspec.Struct):
    """The result of a search in a separate process."""

    uses: list[Use]
    stopped: int | None


def timeline_of(trace_id: str, profile: str) -> tuple[Timeline, Uses]:
    """A trace laid out with a profile's tokenizer, and the uses of evidence in it."""
    return _timeline(str(workspace().path), trace_id, profile)


@st.cache_resource(max_entries=24, show_spinner=False)
def _fates(path: str, run_id: str, turns: int, _run: Run, profile: str) -> list[Fate]:
    timeline, used = timeline_of(_run.head.trace_id, profile)
    return fates(timeline, _run.turns, used)


def fates_of(run: Run) -> list[Fate]:
    """What became of the evidence that later actions used."""
    return _fates(str(workspace().path), run.run_id, len(run.turns), run, run.head.profile)


@st.cache_resource(max_entries=24, show_spinner=False)
def _drops(path: str, run_id: str, turns: int, _run: Run) -> list[Drop]:
    return drops(_run.turns, _run.head.block_tokens, fates_of(_run))


def drops_of(run: Run) -> list[Drop]:
    """Blocks that left a request with nothing in their place, and the evidence that went with them."""
    return _drops(str(workspace().path), run.run_id, len(run.turns), run)


@st.cache_resource(max_entries=8, show_spinner=False)
def _whatif(path: str, run_id: str, turns: int, _run: Run) -> WhatIfRun | None:
    return what_if(_run)


def whatif_of(run: Run) -> WhatIfRun | None:
    """The run laid out for what-if; None for policies without heads."""
    return _whatif(str(workspace().path), run.run_id, len(run.turns), run)


@st.cache_resource(max_entries=16, show_spinner=False)
def _memories(path: str, run_id: str, turns: int, _run: Run) -> dict[str, Memory]:
    return run_store().memories(_run)


def memories_of(run: Run) -> dict[str, Memory]:
    """The memories a PaMER run stored, by id."""
    return _memories(str(workspace().path), run.run_id, len(run.turns), run)


def _those(trace_ids: Iterable[str]) -> tuple[str, ...] | None:
    """The traces whose runs are read; None: all, read once for every page, as long as the workspace is not very large."""
    few = run_store().count() <= MOST_RUNS
    return None if few else tuple(dict.fromkeys(trace_ids))


@st.cache_resource(max_entries=4, show_spinner=False)
def _policies(path: str, at: tuple[int, int], those: tuple[str, ...] | None) -> dict[str, list[tuple[str, bool]]]:
    return run_store().policies_by_trace(those)


def policies_of_traces(trace_ids: Iterable[str]) -> dict[str, list[tuple[str, bool]]]:
    """Policies that these traces were replayed through, and whether to the end; empty, with a warning, if runs cannot be read."""
    try:
        at = version()
        return _policies(str(workspace().path), at, _those(trace_ids)) if at[1] else {}
    except StorageError as error:
        st.warning(one_line(str(error)))
        return {}


@st.cache_resource(max_entries=4, show_spinner=False)
def _run_table(path: str, at: tuple[int, int], those: tuple[str, ...] | None) -> pl.DataFrame:
    return run_table(workspace(), trace_ids=those)


def all_runs(profile: str, trace_ids: Iterable[str], heads: str = "") -> pl.DataFrame:
    """Finished runs with a profile, one per trace and policy: of these traces, perhaps of others too, and if a hash is given, only of
    those heads."""
    found = _run_table(str(workspace().path), version(), _those(trace_ids) if version()[1] else None)
    return found if found.is_empty() else newest_runs(with_heads(found.filter(pl.col("profile") == profile), heads))


def counted_how(runs: pl.DataFrame) -> str:
    """How the tokens of these runs were counted; all ways are named if there are several."""
    ways = runs.select("tokens_kind", "tokenizer").unique().sort("tokens_kind", "tokenizer").rows()
    return " and ".join(counted_with(kind, tokenizer) for kind, tokenizer in ways)


def demo_words(runs: pl.DataFrame) -> str:
    """How much of what is shown is demo data, as a sentence; empty if none is."""
    traces, demo = runs["trace_id"].n_unique(), runs.filter("demo")["trace_id"].n_unique()
    return (
        "" if not demo else DEMO if demo == traces else f" {demo:,} of {counted(traces, 'trace')} {'is' if demo == 1 else 'are'} demo data."
    )
