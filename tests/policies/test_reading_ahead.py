"""A replay that reads its states ahead decides as one that computes them turn by turn."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamer_lab.bench.measure import save_tiny
from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.controller.probe import Votes
from pamer_lab.errors import Cancelled, ProbeError
from pamer_lab.factory import Parts
from pamer_lab.features.extract import state_of
from pamer_lab.features.store import FeatureStore
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.readout import HeadStack
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.turns import FIRST_PIECE, pieces
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message, Tool
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace, turns_of

pytestmark = pytest.mark.weights
POLICY = "pamer:minimum=60:retained=2"
TURNS = 14


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return load_frozen(save_tiny(tmp_path_factory.mktemp("ahead") / "tiny"), "cpu")


def some_heads(model: FrozenModel, hint: str = "none") -> HeadSet:
    rng = np.random.default_rng(1)
    zeros, ones = np.zeros((5, model.width), np.float32), np.ones((5, model.width), np.float32)
    stack = HeadStack(mean=zeros, scale=ones, weight=rng.normal(size=(5, model.width)).astype(np.float32), bias=np.zeros(5, np.float32))
    return HeadSet(stack, (0.5,) * 5, model.name, "final", hint=hint)


class TurnByTurn:
    """The same heads, each state by a pass of its own."""

    name = "turn by turn"

    def __init__(self, model: FrozenModel, heads: HeadSet) -> None:
        self.model, self.heads = model, heads

    def vote(self, messages: Sequence[Message], tools: Sequence[Tool], active_tokens: int) -> Votes:
        hint: Any = self.heads.hint
        state = state_of(messages, tools, self.model, hint, active_tokens=active_tokens)
        return Votes(tuple(float(value) for value in self.heads.logits(state)), self.heads.thresholds)


def parts(probe: Any) -> Parts:
    return Parts(embedder=HashingEmbedder(64), probe=probe)


def decided(turns: Sequence[Turn]) -> list[Any]:
    return [(turn.action, turn.items, turn.votes, turn.memory_ids, turn.states) for turn in turns]


@pytest.mark.parametrize("hint", ["none", "faithful"])
@pytest.mark.parametrize("policy", [POLICY, "pamer+:minimum=60", "pamer:minimum=60:retained=0", "pamer:minimum=60:logits=asked"])
def test_decisions_are_the_same_and_logits_equal_to_a_ten_thousandth(model: FrozenModel, tmp_path: Path, policy: str, hint: str) -> None:
    heads, trace = some_heads(model, hint), long_trace(TURNS)
    ahead = turns_of(trace, policy, workspace=tmp_path / "ahead", parts=parts(HeadsProbe(model, heads)))
    slow = turns_of(trace, policy, workspace=tmp_path / "slow", parts=parts(TurnByTurn(model, heads)))
    assert any(turn.logits for turn in slow) and ("retained=0" in policy or len({turn.action for turn in slow}) > 1)
    assert decided(ahead) == decided(slow)
    for one, other in zip(ahead, slow, strict=True):
        assert one.logits == pytest.approx(other.logits, abs=1e-4)


def test_a_second_policy_and_a_fresh_replay_compute_no_token(model: FrozenModel, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    trace = long_trace(TURNS)
    computed = []
    for policy in (POLICY, "pamer+:minimum=60:retained=2"):
        probe = HeadsProbe(model, some_heads(model), FeatureStore(workspace.database, model))
        replay(trace, policy, workspace, ReplayOptions(parts=parts(probe)))
        computed.append(probe.states.tokens_computed)
    assert computed[0] > 0 == computed[1]


def test_what_was_read_before_a_stop_is_kept_and_the_run_goes_on(model: FrozenModel, tmp_path: Path) -> None:
    workspace, trace = Workspace(tmp_path), long_trace(TURNS)
    small = replace(model, chunk=64)
    probe = HeadsProbe(small, some_heads(small), FeatureStore(workspace.database, small))
    read: list[int] = []
    stopping = ReplayOptions(parts=parts(probe), reading=lambda progress: read.append(progress.done), cancelled=lambda: len(read) > 40)
    with pytest.raises(Cancelled):
        replay(trace, POLICY, workspace, stopping)
    [stopped] = RunStore(workspace).heads()
    assert 0 < stopped.read < TURNS and RunStore(workspace).stored_count(stopped.run_id) < stopped.read
    again = HeadsProbe(small, some_heads(small), FeatureStore(workspace.database, small))
    run = replay(trace, POLICY, workspace, ReplayOptions(parts=parts(again)))
    assert run.head.status == "done" and len(run.turns) == TURNS and run.head.read == 0
    fresh = HeadsProbe(small, some_heads(small))
    replay(trace, POLICY, Workspace(tmp_path / "other"), ReplayOptions(parts=parts(fresh)))
    assert again.states.tokens_computed < fresh.states.tokens_computed


def test_turns_come_while_later_states_are_unread_and_progress_is_that_of_all_turns(model: FrozenModel, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    options = ReplayOptions(
        parts=parts(HeadsProbe(model, some_heads(model))),
        reading=lambda progress: seen.append(("read", progress.done, progress.total)),
        watch=lambda turn, of: seen.append(("turn", turn.t, of)),
    )
    replay(long_trace(3 * FIRST_PIECE, words=8), POLICY, Workspace(tmp_path), options)
    read = [(done, total) for kind, done, total in seen if kind == "read"]
    assert seen[0][0] == "read" and [kind for kind, *_ in seen].index("turn") < max(
        n for n, (kind, *_) in enumerate(seen) if kind == "read"
    )
    assert read == sorted(read) and len({total for _, total in read}) == 1 and read[0][0] < read[-1][0] == read[-1][1]


def test_pieces_cover_all_turns_once_and_grow() -> None:
    found = list(pieces(5, 5 + 6 * FIRST_PIECE))
    assert [turn for piece in found for turn in piece] == list(range(5, 5 + 6 * FIRST_PIECE))
    assert [len(piece) for piece in found] == [FIRST_PIECE, 2 * FIRST_PIECE, 3 * FIRST_PIECE]


def test_states_that_cannot_be_read_ahead_are_asked_for_turn_by_turn(
    model: FrozenModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, trace = some_heads(model), long_trace(TURNS)
    expected = turns_of(trace, POLICY, workspace=tmp_path / "one", parts=parts(HeadsProbe(model, heads)))
    probe = HeadsProbe(model, heads)

    def fail(*given: object) -> None:
        raise ProbeError("no memory")

    monkeypatch.setattr(probe.states, "read_ahead", fail)
    found = turns_of(trace, POLICY, workspace=tmp_path / "two", parts=parts(probe))
    assert decided(found) == decided(expected)
