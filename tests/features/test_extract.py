"""Trunk and branches give the same states as one forward pass per decision point, and nothing is computed twice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pamer_lab.bench.extract import generated_trace, recent_bound
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.features import serialise
from pamer_lab.features.extract import extract, extract_traces, state_of
from pamer_lab.features.serialise import Hint
from pamer_lab.features.store import FeatureStore
from pamer_lab.features.values import Request, trace_requests
from pamer_lab.jobs import Progress
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.workspace import Workspace
from tests.features.conftest import assert_same_states, load_tiny, make_trace, naive_all

CONTEXTS = ("full", "current", "recent1", "recent2", "recent4")
pytestmark = pytest.mark.weights


@pytest.mark.parametrize(("hint", "limit"), [("none", 8192), ("faithful", 8192), ("faithful", 110)])
def test_smollm2_states_equal_naive_forwards_in_all_layers_and_poolings(smollm: FrozenModel, hint: Hint, limit: int) -> None:
    model = replace(smollm, limit=limit, prefix_kept=40)
    requests = trace_requests([make_trace(4, words=1)], ("full", "recent1"), hint)
    found = extract(requests, model)
    assert (max(point.tokens for point in found.points) == limit) == (limit == 110)
    assert found.vectors.shape == (8, 31, 2, 576)
    assert found.layers[0] == "block_1" and found.layers[-1] == "final"
    assert_same_states(found.vectors, naive_all(model, requests))
    assert found.tokens_computed < found.tokens_naive


@pytest.mark.parametrize("hint", ["none", "faithful"])
@pytest.mark.parametrize("chunk", [4096, 70])
@pytest.mark.parametrize("limit", [0, 150])
@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_small_models_equal_naive_forwards_in_chunks_and_under_truncation(
    tiny_folders: dict[str, Path], kind: str, limit: int, chunk: int, hint: Hint
) -> None:
    model = load_tiny(tiny_folders[kind], limit=limit, kept=40, chunk=chunk)
    assert model.recurrent() == (kind == "qwen")
    trace = make_trace(6)
    requests = [*trace_requests([trace], CONTEXTS, hint), Request(trace.messages, trace.tools, [3, 5], (1, 2, 3), hint)]
    found = extract(requests, model)
    assert_same_states(found.vectors, naive_all(model, requests))
    if limit:
        assert max(point.tokens for point in found.points) == limit


def test_full_context_without_a_hint_computes_every_token_of_the_trace_once(llama: FrozenModel) -> None:
    found = extract(trace_requests([make_trace(6)], ["full"], "none"), llama)
    assert found.tokens_computed == found.points[-1].tokens
    assert found.tokens_naive == sum(point.tokens for point in found.points)


@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_recent2_computes_the_prefix_once_and_hints_add_only_short_branches(tiny_folders: dict[str, Path], kind: str) -> None:
    model = load_tiny(tiny_folders[kind])
    trace = generated_trace(decisions=6)
    recent = extract(trace_requests([trace], ["recent2"], "none"), model, layers=["final"])
    assert recent.tokens_computed <= 1.05 * recent_bound(trace, model)
    plain = extract(trace_requests([trace], ["full"], "none"), model, layers=["final"])
    hinted = extract(trace_requests([trace], ["full"], "faithful"), model, layers=["final"])
    assert hinted.tokens_computed <= 1.5 * plain.tokens_computed


def test_a_second_run_computes_nothing_and_gives_the_same_vectors(llama: FrozenModel, workspace: Workspace) -> None:
    first = extract_traces([make_trace(5)], llama, workspace=workspace)
    second = extract_traces([make_trace(5)], llama, workspace=workspace)
    assert (first.cache_hits, second.cache_hits) == (0, 10)
    assert (second.tokens_computed, second.tokens_naive) == (0, 0)
    assert np.array_equal(first.vectors, second.vectors)
    assert first.keys == second.keys


def test_layers_that_were_not_asked_for_are_added_later_beside_the_old_ones(llama: FrozenModel, workspace: Workspace) -> None:
    whole = extract_traces([make_trace(4)], llama)
    extract_traces([make_trace(4)], llama, layers=["final"], poolings=["last"], workspace=workspace)
    extract_traces([make_trace(4)], llama, layers=["block_2"], workspace=workspace)
    both = extract_traces([make_trace(4)], llama, layers=["final"], poolings=["last"], workspace=workspace)
    assert both.tokens_computed == 0
    assert_same_states(both.vectors, whole.vectors[:, -1:, :1])
    assert extract_traces([make_trace(4)], llama, layers=["block_2", "final"], workspace=workspace).tokens_computed > 0


def test_a_cancelled_run_keeps_what_was_finished_and_the_next_one_goes_on(tiny_folders: dict[str, Path], workspace: Workspace) -> None:
    model = load_tiny(tiny_folders["llama"], chunk=100)
    seen: list[Progress] = []
    with pytest.raises(Cancelled):
        extract_traces([make_trace(8)], model, workspace=workspace, progress=seen.append, cancel=lambda: len(seen) == 3)
    assert seen[-1].done < seen[-1].total and seen[-1].what == "tokens" and seen[-1].there == 0
    again = extract_traces([make_trace(8)], model, workspace=workspace, progress=seen.append)
    assert 0 < again.cache_hits < len(again.points)
    assert seen[-1].there == again.cache_hits / len(again.points) and seen[-1].share_of_all == 1


def test_a_changed_serialiser_does_not_reuse_old_vectors(
    tiny_folders: dict[str, Path], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract_traces([make_trace(3)], load_tiny(tiny_folders["llama"]), workspace=workspace)
    monkeypatch.setattr(serialise, "VERSION", serialise.VERSION + 1)
    assert extract_traces([make_trace(3)], load_tiny(tiny_folders["llama"]), workspace=workspace).cache_hits == 0


def test_the_controllers_state_is_the_last_token_after_the_final_norm(llama: FrozenModel, workspace: Workspace) -> None:
    trace = make_trace(5)
    store = FeatureStore(workspace.database, llama)
    points = extract(trace_requests([trace], ["full"], "none"), llama)
    state = state_of(trace.messages[:-1], trace.tools, llama, store=store)
    assert_same_states(state, points.of("final", "last")[-1])
    assert np.array_equal(state, state_of(trace.messages[:-1], trace.tools, llama, store=store))


def test_unknown_layers_and_poolings_are_refused_with_the_known_ones(llama: FrozenModel) -> None:
    with pytest.raises(InputError, match="block_1"):
        extract_traces([make_trace(2)], llama, layers=["block_99"])
    with pytest.raises(InputError, match="last, mean"):
        extract_traces([make_trace(2)], llama, poolings=["max"])


@pytest.mark.parametrize("kind", ["llama", "qwen"])
@pytest.mark.parametrize("layer", [1, 2])
def test_a_pass_goes_no_deeper_than_the_wanted_layer_and_finds_the_same_states(
    tiny_folders: dict[str, Path], kind: str, layer: int
) -> None:
    model = load_tiny(tiny_folders[kind], chunk=70)
    requests = trace_requests([make_trace(6)], ["full", "recent2"], "faithful")
    whole = extract(requests, model)
    ran: list[int] = []
    handles = [block.register_forward_pre_hook(lambda *_, number=number: ran.append(number)) for number, block in enumerate(model.blocks)]
    inner = extract(requests, model, layers=[f"block_{layer}"])
    for handle in handles:
        handle.remove()
    assert set(ran) == set(range(layer))
    for pooling in ("last", "mean"):
        assert np.allclose(inner.of(f"block_{layer}", pooling), whole.of(f"block_{layer}", pooling), atol=1e-5)
