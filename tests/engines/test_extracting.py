"""States computed by workers: the same bytes in the store as computed in this process, and a trace that fails is named."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.engines import Engine, LocalEngine
from pamer_lab.errors import ProbeError
from pamer_lab.features.elsewhere import Elsewhere, computing_on
from pamer_lab.features.extract import extract, extract_traces
from pamer_lab.features.store import FeatureStore
from pamer_lab.features.values import Request
from pamer_lab.models.frozen import load_frozen
from pamer_lab.models.profiles import load_profile
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace

LAYERS = ["block_1", "block_2"]


@pytest.mark.weights
def test_a_worker_stores_the_same_bytes_as_this_process_and_what_is_there_is_skipped(engine: Engine, tmp_path: Path) -> None:
    profile = load_profile("embedded")
    model = load_frozen(profile, "cpu")
    traces = [long_trace(3, words=12, trace_id=f"t-{number}", question_id=f"q{number}") for number in range(2)]
    here, there = Workspace(tmp_path / "here"), Workspace(tmp_path / "there")
    alone = extract_traces(traces, model, layers=LAYERS, workspace=here)
    seen: list[Any] = []
    with computing_on(Elsewhere(engine, 1, there, profile, "cpu")):
        found = extract_traces(traces, model, layers=LAYERS, workspace=there, progress=seen.append)
        again = extract_traces(traces, model, layers=LAYERS, workspace=there)
    assert found.keys == alone.keys and found.points == alone.points
    assert (found.tokens_computed, found.tokens_naive) == (alone.tokens_computed, alone.tokens_naive) and seen[
        -1
    ].done == found.tokens_computed
    assert found.vectors.tobytes() == alone.vectors.tobytes()
    assert again.tokens_computed == 0 and again.cache_hits == len(again.points)


@pytest.mark.weights
def test_traces_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    profile = load_profile("embedded")
    model = load_frozen(profile, "cpu")
    workspace = Workspace(tmp_path / "work")
    good, bad = (long_trace(2, words=8, trace_id=name) for name in ("t-good", "t-bad"))
    requests = [Request(trace.messages, trace.tools, range(2), "recent2", name=trace.trace_id) for trace in (bad, good)]
    place = Elsewhere(LocalEngine(), 1, workspace, profile, "nowhere")
    with computing_on(place), pytest.raises(ProbeError, match="t-bad"):
        extract(requests, model, layers=LAYERS, store=FeatureStore(workspace.database, model))
