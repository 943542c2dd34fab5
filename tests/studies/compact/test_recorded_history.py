"""Compact contexts of recorded histories: conditions choose from what the agent had, and nothing of another history is reused."""

import numpy as np
import pytest
from msgspec import structs

from pamer_lab.bench.measure import save_tiny
from pamer_lab.features.extract import state_of
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.studies.compact.points import decision_points
from pamer_lab.studies.compact.registry import choose, condition
from pamer_lab.studies.compact.states import Readings, States
from pamer_lab.studies.compact.view import context_at
from pamer_lab.studies.decisions import Decisions
from pamer_lab.trajectory.recorded import HISTORIES, History
from pamer_lab.trajectory.values import Event, Trace
from tests.features.conftest import load_tiny
from tests.studies.compact.making import resources, sized


def compacted() -> Trace:
    """Blocks 0 to 3 (messages 1 to 8) gave way to a summary of 7 tokens before block 4."""
    return structs.replace(sized(1, 2, 4, 8, 16, 32, 64, 128), events=(Event("compaction", 9, "sum size=7", replaced=((1, 9),)),))


def states(history: History, model: FrozenModel, points: tuple[int, ...]) -> States:
    trace = compacted()
    asked = np.ones((2, len(points)), dtype=bool)
    decisions = Decisions(tuple((trace.trace_id, t) for t in points), ("q",) * len(points), asked, asked, "", history)
    return States(Readings({trace.trace_id: trace}, decisions, resources()), model, None)


def test_tokens_are_those_of_the_history_the_agent_had() -> None:
    counts = resources().counts
    rows = {history: decision_points(compacted(), [3, 4, 6], history) for history in HISTORIES}
    assert [counts.full(point) for point in rows["full"]] == [15 + 7, 15 + 15, 15 + 15 + 48]
    assert [counts.full(point) for point in rows["recorded"]] == [15 + 7, 15 + 7, 15 + 7 + 48]
    assert [(point.last, point.rebuilt) for point in rows["recorded"]] == [(2, 0), (-1, 1), (1, 1)]


def test_evidence_comes_from_the_blocks_that_are_still_there() -> None:
    tools = resources()
    for name in ("raw-top3", "embedding-top3"):
        before, after = (condition(name).read(point, tools) for point in decision_points(compacted(), [4, 8], "recorded"))
        assert before.evidence == ()
        assert sorted(one.block for one in after.evidence) == [0, 1]
    view = context_at(compacted(), 8, "raw-top3", tools, history="recorded")
    assert (view.rebuilt, view.tokens, view.full_tokens, view.left_out) == (1, 262, 262, ())


@pytest.mark.weights
def test_every_state_equals_a_pass_over_what_the_condition_shows_of_its_history(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = load_tiny(save_tiny(tmp_path_factory.mktemp("tiny") / "model", "llama"))
    for history in HISTORIES:
        made = states(history, model, (2, 5, 8))
        conditions = choose("full,recent,raw,hidden")
        made.compute(conditions)
        for name in ("recent1", "raw-top1", "full-no-hint"):
            one = next(found for found in conditions if found.name == name)
            for point, reading, vector in zip(made.points, made.readings.of(one), made.vectors(one), strict=True):
                shown = [point.messages[index] for index in point.indices(reading.blocks)]
                assert np.abs(state_of(shown, point.tools, model) - vector).max() < 1e-3
