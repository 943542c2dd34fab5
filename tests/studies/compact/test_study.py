"""The compact table of a small study, with every context written out by hand and every probe trained alone."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from pamer_lab import read_traces
from pamer_lab.bench.measure import save_tiny
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.features.extract import state_of
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.probes.readout import sigmoid
from pamer_lab.studies.compact.fitting import Fitter
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.registry import choose
from pamer_lab.studies.compact.states import Readings, States
from pamer_lab.studies.compact.study import Bench
from pamer_lab.studies.compact.values import Resources
from pamer_lab.studies.decisions import TARGETS, Decisions, decisions_of, make_splits
from pamer_lab.studies.distill import Lab
from pamer_lab.trajectory.values import Message, Trace
from tests.commands.labelled import write_labelled
from tests.features.conftest import load_tiny
from tests.studies.small_study import differences, grid_data, measure, train_alone

QUESTIONS, TURNS = 14, 9
CONDITIONS = "full,recent2,recent2-kd,raw-top5,bank-recent5"
CLOSE = 0.03
"""Training in float32 and in float64 differ by less."""


def block(trace: Trace, number: int) -> tuple[Message, ...]:
    """A call and its result."""
    return trace.messages[1 + 2 * number : 3 + 2 * number]


def nearest_by_words(trace: Trace, t: int, k: int) -> list[int]:
    """Blocks older than the newest two by the cosine of their word counts to the last block's; of equals the newer."""

    def words(number: int) -> Counter[str]:
        call, result = block(trace, number)
        text = f"{call.tool_calls[0].name} {call.tool_calls[0].arguments} {result.content}"
        return Counter(re.findall(r"\w+", text.lower()))

    def cosine(one: Counter[str], other: Counter[str]) -> float:
        return sum(one[word] * other[word] for word in one) / math.sqrt(
            sum(n * n for n in one.values()) * sum(n * n for n in other.values())
        )

    last = words(t - 1)
    return sorted(sorted(range(t - 2), key=lambda number: (-round(cosine(words(number), last), 12), -number))[:k])


def features_by_hand(traces: dict[str, Trace], decisions: Decisions, model: FrozenModel) -> dict[str, np.ndarray]:
    """Condition -> [n, d], each row from one pass over the messages that the paper names."""

    kept: dict[tuple[str, int], np.ndarray] = {}

    def state(trace: Trace, numbers: Sequence[int]) -> np.ndarray:
        return state_of([trace.messages[0], *(message for number in numbers for message in block(trace, number))], trace.tools, model)

    def stored(trace: Trace, t: int) -> np.ndarray:
        kept[trace.trace_id, t] = state(trace, [t - 1])
        older = [kept[trace.trace_id, turn] for turn in range(max(1, t - 5), t)] or [kept[trace.trace_id, t]]
        return np.concatenate([kept[trace.trace_id, t], np.mean(older, 0)])

    made: dict[str, Callable[[Trace, int], np.ndarray]] = {
        "full": lambda trace, t: state_of(trace.messages[: 1 + 2 * t], trace.tools, model, "faithful"),
        "recent2": lambda trace, t: state(trace, range(max(0, t - 2), t)),
        "raw-top5": lambda trace, t: state(trace, [*nearest_by_words(trace, t, 5), *range(max(0, t - 2), t)]),
        "bank-recent5": stored,
    }
    return {name: np.stack([one(traces[trace_id], t) for trace_id, t in decisions.keys]) for name, one in made.items()}


@pytest.mark.weights
def test_every_row_of_the_compact_table_is_its_context_read_by_a_probe_trained_alone(tmp_path: Path) -> None:
    model = load_tiny(save_tiny(tmp_path / "model", "llama"))
    words = [f"word{number}" for number in range(40)]
    corpus = write_labelled(tmp_path / "corpus.jsonl", QUESTIONS, TURNS, lambda rng: " ".join(rng.choice(words, size=rng.integers(3, 12))))
    traces = {trace.trace_id: trace for trace in read_traces(corpus)}
    decisions = decisions_of(traces.values())
    splits, _ = make_splits(decisions, (0, 1))
    states = States(Readings(traces, decisions, Resources(Counts(MessageTokens(EstimatedCounter())))), model, None)
    rows, _, _ = Bench(states, Fitter(Lab(decisions, splits, resamples=20)), model, choose(CONDITIONS), "final").run()
    found = {(row["condition"], row["target"]): row for row in rows}
    assert len(found) == 12  # the group `full` has a row without hint

    features = features_by_hand(traces, decisions, model)
    teacher = np.stack(
        [
            [train_alone(grid_data(decisions, splits, features["full"]), target, number, "mlp")[0] for number in range(2)]
            for target in range(2)
        ]
    )
    for name in CONDITIONS.split(","):
        own, taught = features[name.removesuffix("-kd")], sigmoid(teacher).astype(np.float32) if name.endswith("-kd") else None
        for target, word in enumerate(TARGETS):
            logits, _ = train_alone(grid_data(decisions, splits, own, taught), target, 1, "mlp")
            wrong = differences(found[name, word], 1, measure(decisions, splits[1], target, logits))
            assert {key: value for key, value in wrong.items() if abs(value) > CLOSE} == {}, (name, word)
