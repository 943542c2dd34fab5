"""States of a study: equal texts are one vector, beginnings are computed once, each equals its own pass, a stopped run goes on."""

from dataclasses import replace

import numpy as np
import pytest

from pamer_lab.bench.measure import save_tiny
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.features.extract import extract, state_of
from pamer_lab.features.store import FeatureStore
from pamer_lab.jobs import Progress
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.studies.compact.recent import Recent
from pamer_lab.studies.compact.registry import choose
from pamer_lab.studies.compact.states import Readings, States
from pamer_lab.studies.decisions import Decisions
from pamer_lab.workspace import Workspace
from tests.features.conftest import load_tiny
from tests.studies.compact.making import resources, trace

BLOCKS = 7


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return load_tiny(save_tiny(tmp_path_factory.mktemp("tiny") / "model", "llama"))


def states_of(model: FrozenModel, points: tuple[int, ...], store: FeatureStore | None = None) -> States:
    rng = np.random.default_rng(0)
    found = trace([" ".join(rng.choice(["amber", "birch", "cedar", "dune"], size=6)) for _ in range(BLOCKS)])
    keys = tuple((found.trace_id, t) for t in points)
    asked = np.ones((2, len(keys)), dtype=bool)
    decisions = Decisions(keys, ("q",) * len(keys), asked, asked, "")
    return States(Readings({found.trace_id: found}, decisions, resources()), model, store)


@pytest.mark.weights
def test_a_stopped_run_keeps_what_it_finished_and_the_next_one_computes_the_rest(model: FrozenModel, workspace: Workspace) -> None:
    states, conditions = states_of(model, (2, 5, 7), FeatureStore(workspace.database, model)), choose("recent,raw")
    planned = states.forecast(conditions)

    def stop(progress: Progress) -> None:
        if progress.done > planned.tokens // 2:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        states.compute(conditions, stop)
    left = states.forecast(conditions)
    assert 0 < left.cached < planned.inputs
    assert 0 < left.tokens < planned.tokens
    assert states.compute(conditions)["tokens_computed"] == left.tokens
    assert states.forecast(conditions).tokens == 0


@pytest.mark.weights
def test_equal_texts_are_one_vector_and_every_vector_equals_its_own_pass(model: FrozenModel) -> None:
    states = states_of(model, (2, 5, 7))
    keys = states.points
    conditions = choose("full,recent,raw,controls,bank-recent5")
    with pytest.raises(InputError, match="recent2"):
        states.vectors(Recent(2))
    planned = states.forecast(conditions)
    cost = states.compute(conditions)
    assert cost["tokens_computed"] == planned.tokens < planned.tokens_naive
    assert planned.inputs < len(conditions) * len(keys)
    for one in conditions:
        vectors = states.vectors(one)
        for row, (point, reading) in enumerate(zip(states.points, states.readings.of(one), strict=True)):
            messages = [point.messages[index] for index in point.indices(reading.blocks)]
            alone = state_of(messages, point.tools, model, reading.hint)  # without a hint, or the full request itself
            assert np.abs(vectors[row] - alone).max() <= 1e-4 * np.linalg.norm(alone)
    early = [states.vectors(one)[0] for one in choose("recent2,recent4,raw-top5,recency-top3")[1:]]
    assert all(np.array_equal(early[0], other) for other in early)  # two blocks of history: all read the same text
    blocks = states.stored()
    assert blocks.states.shape == (BLOCKS, model.width)
    assert (blocks.starts.tolist(), blocks.places.tolist()) == ([0, BLOCKS], [[0, 2], [0, 5], [0, 7]])
    assert np.array_equal(blocks.states[4], states.vectors(Recent(1))[1])


def test_rows_whose_text_is_over_the_limit_are_counted(model: FrozenModel) -> None:
    conditions = choose("recent1")
    whole = states_of(model, (2, 5, 7))
    whole.compute(conditions)
    assert [whole.over_the_limit(one) for one in conditions] == [0, 0]
    found = extract(list(whole.requests(conditions[:1]).values()), model, layers="final")
    lengths = sorted(point.tokens for point in found.points)
    small = states_of(replace(model, limit=lengths[1]), (2, 5, 7))  # the second full context just fits
    small.compute(conditions)
    assert [small.over_the_limit(one) for one in conditions] == [1, 0]
