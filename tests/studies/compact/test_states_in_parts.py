"""A compact study whose states stay in the workspace has the results of one in memory, and few rows in memory at a time."""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pamer_lab import read_traces
from pamer_lab.bench.measure import save_tiny
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.features.store import COPIES, FeatureStore, StoredStates
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.probes.readout import Floats
from pamer_lab.probes.training import Training
from pamer_lab.studies.bank import STATES_MEMORY
from pamer_lab.studies.compact import gru
from pamer_lab.studies.compact import states as compact_states
from pamer_lab.studies.compact.fitting import Fitter
from pamer_lab.studies.compact.points import Counts
from pamer_lab.studies.compact.registry import all_conditions, choose
from pamer_lab.studies.compact.states import Readings, States
from pamer_lab.studies.compact.study import PREFERRED, Bench
from pamer_lab.studies.compact.values import Resources
from pamer_lab.studies.decisions import decisions_of, make_splits
from pamer_lab.studies.distill import Lab
from pamer_lab.workspace import Workspace
from tests.commands.labelled import write_labelled
from tests.features.conftest import load_tiny

QUESTIONS, TURNS, HELD = 14, 9, 24
CONDITIONS = choose(
    "full,recent2,recent2-scalar,recent2-kd,raw-top1,embedding-top1,random-top3,bank-recent5,bank-similarity3,gru512-similarity5,"
    "embedding-top3-cap60",
    caps=(60,),
)


class Remembering(Fitter):
    """Keeps the key and the logits of every fit."""

    def fit(self, name: str, representation: Any, teacher: Floats | None = None) -> Floats:
        self.keys = {**getattr(self, "keys", {}), name: self._key(representation, None)}
        self.logits = {**getattr(self, "logits", {}), name: super().fit(name, representation, teacher)}
        return self.logits[name]


@dataclass
class Alive:
    """Rows that were read from the workspace and are still held by somebody."""

    now: int = 0
    most: int = 0
    reads: list[int] = field(default_factory=list)

    def add(self, rows: np.ndarray) -> np.ndarray:
        self.reads.append(len(rows))
        self.now += len(rows)
        self.most = max(self.most, self.now)
        weakref.finalize(rows, self._gone, len(rows))
        return rows

    def _gone(self, count: int) -> None:
        self.now -= count


@dataclass
class Study:
    """One run of the study, and what it held."""

    bench: Bench
    rows: list[dict[str, Any]]
    notes: dict[str, Any]
    said: list[Any]
    alive: Alive
    extracted: list[int]
    """Rows that each extraction gave back."""
    padded: list[int]
    """Steps that the network read at once, training batches aside."""

    @property
    def fitter(self) -> Remembering:
        assert isinstance(self.bench.fitter, Remembering)
        return self.bench.fitter


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return load_tiny(save_tiny(tmp_path_factory.mktemp("tiny") / "model", "llama"))


@pytest.fixture(scope="module")
def studies(model: FrozenModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Study, Study]]:
    """The study in parts, which computes the states, and then in memory."""
    folder = tmp_path_factory.mktemp("study")
    store = FeatureStore(Workspace(folder / "workspace").database, model)
    yield study(model, store, folder, HELD * COPIES * 4 * model.width), study(model, store, folder, STATES_MEMORY)


def study(model: FrozenModel, store: FeatureStore | None, folder: Path, memory: int) -> Study:
    words = [f"word{number}" for number in range(40)]
    corpus = write_labelled(folder / "corpus.jsonl", QUESTIONS, TURNS, lambda rng: " ".join(rng.choice(words, size=rng.integers(3, 12))))
    traces = {trace.trace_id: trace for trace in read_traces(corpus)}
    decisions = decisions_of(traces.values())
    splits, _ = make_splits(decisions, (0, 1))
    resources = Resources(Counts(MessageTokens(EstimatedCounter())), HashingEmbedder().embed)
    states = States(Readings(traces, decisions, resources), model, store, memory=memory)
    said: list[Any] = []
    bench = Bench(
        states,
        Remembering(Lab(decisions, splits, resamples=20), training=Training(epochs=4)),
        model,
        CONDITIONS,
        PREFERRED,
        None,
        said.append,
    )
    alive, extracted, padded = Alive(), [], []
    read, sequences, extract = StoredStates.read, gru._Data.sequences, compact_states.extract

    def extracting(*arguments: Any, **options: Any) -> Any:
        found = extract(*arguments, **options)
        extracted.append(len(found.vectors))
        return found

    def counted(self: gru._Data, traces: np.ndarray) -> Any:
        import torch

        found = sequences(self, traces)
        if not torch.is_grad_enabled():
            padded.append(found.shape[0] * found.shape[1])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoredStates, "read", lambda self, number, rows: alive.add(read(self, number, rows)))
        patch.setattr(gru._Data, "sequences", counted)
        patch.setattr(compact_states, "extract", extracting)
        rows, _, notes = bench.run()
    return Study(bench, rows, notes, said, alive, extracted, padded)


@pytest.mark.weights
def test_every_group_of_conditions_has_the_rows_and_logits_of_the_study_in_memory(studies: tuple[Study, Study]) -> None:
    streamed, whole = studies
    assert {one.group.name for one in CONDITIONS} == {one.group.name for one in all_conditions()}
    assert streamed.notes["layer"] == whole.notes["layer"]
    assert streamed.fitter.logits.keys() == whole.fitter.logits.keys() == {one.name for one in CONDITIONS}
    for name, logits in whole.fitter.logits.items():
        np.testing.assert_allclose(streamed.fitter.logits[name], logits, atol=1e-3, err_msg=name)
    for ours, theirs in zip(streamed.rows, whole.rows, strict=True):
        assert (ours["condition"], ours["target"]) == (theirs["condition"], theirs["target"])
        assert ours["mean"] == pytest.approx(theirs["mean"], abs=0.01), ours["condition"]


@pytest.mark.weights
def test_a_fit_has_the_same_key_in_parts_as_in_memory(studies: tuple[Study, Study]) -> None:
    streamed, whole = studies
    assert streamed.fitter.keys == whole.fitter.keys
    assert len(set(whole.fitter.keys.values())) == len(CONDITIONS) - 1, "without its teacher, decision KD is Recent2"


@pytest.mark.weights
def test_the_rows_in_memory_are_bounded_by_the_setting(studies: tuple[Study, Study]) -> None:
    streamed, whole = studies
    assert streamed.extracted == [0, 0] and min(whole.extracted) > HELD
    assert 0 < max(streamed.alive.reads) <= HELD
    assert streamed.alive.most <= 2 * HELD, "a part may be held while the next one is read"
    assert streamed.alive.now == 0
    assert 0 < max(streamed.padded) <= HELD < max(whole.padded)
    assert whole.alive.reads == []
    assert streamed.notes["cost"]["streamed_bytes"] > HELD * COPIES * 4 * 64 and "streamed_bytes" not in whole.notes["cost"]
    assert sum("--states-memory" in str(line) for line in streamed.said) == 2 and not any(
        "--states-memory" in str(line) for line in whole.said
    )


@pytest.mark.weights
def test_without_a_workspace_all_states_are_in_memory(model: FrozenModel, tmp_path: Path) -> None:
    made = study(model, None, tmp_path, 1)
    assert isinstance(made.bench.states.vectors(CONDITIONS[0]), np.ndarray)
    assert "streamed_bytes" not in made.notes["cost"] and made.alive.reads == []
