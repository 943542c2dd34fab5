"""Heads that were trained with the context hint read the same input wherever they are asked."""

from pathlib import Path

import numpy as np
import pytest

from pamer_lab.bench.measure import save_tiny
from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.factory import Parts
from pamer_lab.features import inputs
from pamer_lab.features.serialise import with_hint
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.models.profiles import PROFILES
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.readout import HeadStack
from tests.runs.making import long_trace, turns_of

RESERVE = PROFILES["paper"].output_reserve


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return load_frozen(save_tiny(tmp_path_factory.mktemp("hinted") / "tiny"), "cpu")


def hinted(model: FrozenModel) -> HeadSet:
    """Heads that never reach their threshold, so that nothing is compressed."""
    rng = np.random.default_rng(0)
    stack = HeadStack(
        mean=np.zeros((5, model.width), np.float32),
        scale=np.ones((5, model.width), np.float32),
        weight=rng.normal(size=(5, model.width)).astype(np.float32),
        bias=np.zeros(5, np.float32),
    )
    return HeadSet(stack, (1 - 1e-12,) * 5, model.name, "final", hint="faithful")


def test_asked_and_unasked_turns_give_hinted_heads_the_same_input(
    model: FrozenModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[int] = []
    monkeypatch.setattr(inputs, "with_hint", lambda messages, tokens: named.append(tokens) or with_hint(messages, tokens))
    parts = Parts(embedder=HashingEmbedder(64), probe=HeadsProbe(model, hinted(model)))
    asked = turns_of(long_trace(8), "pamer:minimum=0:retained=1", workspace=tmp_path / "asked", parts=parts)
    at_asked, named[:] = list(dict.fromkeys(named)), []
    unasked = turns_of(long_trace(8), "pamer:minimum=900000:retained=1", workspace=tmp_path / "unasked", parts=parts)
    assert [turn.logits for turn in asked] == [turn.logits for turn in unasked]
    assert sum(bool(turn.logits) for turn in asked) == 6
    assert at_asked == list(dict.fromkeys(named)) == [turn.raw_tokens + RESERVE for turn in asked if turn.logits]
