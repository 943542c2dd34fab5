"""One estimate of what replays take: by the policy's window, the model's size, and the last runs here."""

import json
from pathlib import Path

import pytest

from pamer_lab.factory import Factory
from pamer_lab.models.profiles import FrozenSettings, load_profile
from pamer_lab.models.speed import LOADING, MEASURED, PREFILL, guessed_speed
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.estimate import LIGHT_TURN, estimate
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, estimated, long_trace

EMBEDDED = load_profile("embedded")


def factory(workspace: Workspace) -> Factory:
    return Factory(EMBEDDED, workspace)


@pytest.fixture
def traces(workspace: Workspace) -> list[str]:
    return [row["trace_id"] for row in workspace.add_traces([long_trace(size, trace_id=f"t-{size}") for size in (6, 10)], estimated())]


def test_a_policy_without_models_reads_nothing(workspace: Workspace, traces: list[str]) -> None:
    found = estimate({"base": traces}, factory(workspace))
    assert (found.runs, found.turns, found.models, found.read_tokens, found.basis) == (2, 16, (), 0, "guessed")
    assert found.seconds == pytest.approx(16 * LIGHT_TURN)


def test_what_heads_read_grows_with_the_blocks_their_policy_retains_and_is_shared(workspace: Workspace, traces: list[str]) -> None:
    def of(*policies: str) -> int:
        return estimate(dict.fromkeys(policies, traces[:1]), factory(workspace)).read_tokens

    size = workspace.trace_sizes(traces[:1])[traces[0]]
    assert [of(f"pamer:retained={count}") for count in (1, 2, 4)] == [
        6 * size.head_tokens + count * size.later_tokens for count in (1, 2, 4)
    ]
    assert of("pamer", "pamer+", "base") == of("pamer") < of("pamer", "pamer:retained=4")
    limited = estimate({"pamer": traces[:1]}, Factory(EMBEDDED.model_copy(update={"probe_limit": 10}), workspace))
    assert limited.read_tokens == 60
    assert estimate({"pamer": traces[:1]}, factory(workspace), turn_limit=3).read_tokens == of("pamer") // 2


def test_models_load_once_and_a_first_guess_is_by_speed(workspace: Workspace, traces: list[str]) -> None:
    found = estimate({"pamer": traces, "pamer+": traces}, factory(workspace))
    assert len(found.models) == 2
    assert found.seconds == pytest.approx(LOADING + found.read_tokens / guessed_speed(EMBEDDED))


def test_a_policy_that_ran_here_is_estimated_by_its_own_pace(workspace: Workspace) -> None:
    run = replay(long_trace(8), "sliding-window:2", workspace)
    pace = RunStore(workspace).seconds_per_turn(run.run_id)
    found = estimate({"sliding-window:2": [run.head.trace_id]}, factory(workspace))
    assert found.basis == "measured" and found.seconds == pytest.approx(8 * pace)
    both = estimate({"sliding-window:2": [run.head.trace_id], "base": [run.head.trace_id]}, factory(workspace))
    assert both.basis == "mixed" and both.seconds == pytest.approx(8 * pace + 8 * LIGHT_TURN)
    own = replay(long_trace(8), "pamer", workspace, ReplayOptions(device="cpu", parts=PARTS))
    assert estimate({"pamer": [own.head.trace_id]}, factory(workspace)).basis == "measured"


def test_a_larger_model_is_guessed_to_be_slower_by_its_weights(tmp_path: Path) -> None:
    config = {"text_config": {"num_hidden_layers": 2 * MEASURED.layers, "hidden_size": 2 * MEASURED.width}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    larger = EMBEDDED.model_copy(update={"frozen_model": FrozenSettings(model=str(tmp_path))})
    assert guessed_speed(larger) == PREFILL / 8
    (tmp_path / "config.json").write_text("[]")
    assert guessed_speed(larger) == PREFILL
