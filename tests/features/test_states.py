"""States read one by one behind a kept prefix, or ahead, are those of one forward pass each."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pamer_lab.bench.extract import recent_bound
from pamer_lab.features import states
from pamer_lab.features.contexts import context_messages
from pamer_lab.features.extract import state_of
from pamer_lab.features.serialise import Hint
from pamer_lab.features.states import StateReader
from pamer_lab.features.store import FeatureStore
from pamer_lab.features.values import Request
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.workspace import Workspace
from tests.features.conftest import load_tiny, make_trace

pytestmark = pytest.mark.weights
TRACE = make_trace(7)


def asked(t: int, hint: Hint = "none") -> Request:
    return Request(context_messages(TRACE.messages, t, "recent2"), TRACE.tools, hint=hint, active_tokens=1000 + t)


def alone(request: Request, model: FrozenModel, pooling: str) -> states.State:
    tokens = request.active_tokens
    return state_of(request.messages, request.tools, model, request.hint, "final", pooling, active_tokens=tokens)


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("limit", [0, 110])
@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_states_behind_a_kept_prefix_equal_those_of_complete_passes(
    tiny_folders: dict[str, Path], kind: str, limit: int, pooling: str
) -> None:
    model = load_tiny(tiny_folders[kind], limit=limit, kept=40, chunk=70)
    reader = StateReader(model, "final", pooling)
    for t in range(7):
        request = asked(t, "faithful")
        assert np.abs(reader.read(request) - alone(request, model, pooling)).max() < 1e-4


def test_the_prefix_of_a_session_is_computed_once_and_those_of_other_sessions_are_kept_too(llama: FrozenModel) -> None:
    reader = StateReader(llama, "final", "last")
    other = replace(asked(3), tools=())
    first = reader.read(asked(3))
    before = reader.tokens_computed
    reader.read(other)
    begun = reader.tokens_computed
    reader.read(asked(4))
    after = reader.tokens_computed - begun
    whole = len(next(iter(_inputs(llama, asked(4)))))
    prefix = len(next(iter(_inputs(llama, replace(asked(4), messages=TRACE.messages[:2])))))
    assert begun > before and after < whole - prefix / 2
    assert np.array_equal(reader.read(asked(3)), first) and reader.tokens_computed == begun + after


def test_only_so_many_tokens_of_prefixes_are_kept(llama: FrozenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "BEGINNING_TOKENS", 1)
    reader = StateReader(llama, "final", "last")
    sizes = []
    for request in (asked(3), replace(asked(3), tools=()), asked(4)):
        before = reader.tokens_computed
        reader.read(request)
        sizes.append(reader.tokens_computed - before)
    assert sizes == [len(next(iter(_inputs(llama, request)))) for request in (asked(3), replace(asked(3), tools=()), asked(4))]


def test_states_read_ahead_are_computed_once_and_equal_those_read_one_by_one(llama: FrozenModel, workspace: Workspace) -> None:
    reader = StateReader(llama, "final", "last", FeatureStore(workspace.database, llama))
    reader.read_ahead(Request(TRACE.messages, TRACE.tools, range(7), "recent2"))
    computed = reader.tokens_computed
    assert computed <= recent_bound(TRACE, llama)
    for t in range(7):
        assert np.abs(reader.read(asked(t)) - alone(asked(t), llama, "last")).max() < 1e-4
    assert reader.tokens_computed == computed
    again = StateReader(llama, "final", "last", FeatureStore(workspace.database, llama))
    assert np.array_equal(again.read(asked(5)), reader.read(asked(5))) and again.tokens_computed == 0


def _inputs(model: FrozenModel, request: Request) -> list[states.Tokens]:
    from pamer_lab.features.inputs import inputs_of
    from pamer_lab.features.serialise import serialiser_for

    return [tokens for _, tokens in inputs_of(request, model, serialiser_for(model))]
