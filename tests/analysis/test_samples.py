"""The committed results of the sample study: a part of them is computed again."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from pamer_lab import read_traces
from pamer_lab.analysis.samples import sample_names, sample_study
from pamer_lab.blocks import MessageTokens
from pamer_lab.commands.studying import first_replicas
from pamer_lab.errors import UnknownNameError
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.registry import PACKAGED
from pamer_lab.studies.controls import fit_columns, rule_rows
from pamer_lab.studies.decisions import decisions_of, make_splits
from pamer_lab.studies.observables import observe, one_hot
from pamer_lab.studies.tables import make_row
from pamer_lab.trajectory.values import Trace

CORPUS = Path(__file__).resolve().parents[2] / "sample_traces" / "study"
FEW = 2
"""Traces whose hidden states are computed again."""


@lru_cache(maxsize=2)
def corpus_of(name: str) -> dict[str, Trace]:
    """The traces a sample study was computed on: all runs, or the first ones of each question."""
    replicas = sample_study(name).settings["replicas"]
    traces = read_traces(CORPUS)
    return {trace.trace_id: trace for trace in (first_replicas(traces, replicas) if replicas else traces)}


def test_every_sample_result_names_its_command_corpus_and_leak_check() -> None:
    assert {"controls", "layerwise", "train"} <= set(sample_names())
    for name in sample_names():
        study = sample_study(name)
        assert study.command.startswith(f"pamer-lab {name} sample_traces/study")
        assert all(check.endswith("none in two parts") for check in study.notes["splits"])
        assert all(len(row["seeds"]) == 5 and row["n"] for row in study.rows)
    for name in ("controls", "layerwise", "train"):
        assert sample_study(name).corpus == decisions_of(corpus_of(name).values()).facts()
    with pytest.raises(UnknownNameError, match="layerwise"):
        sample_study("nothing")


def test_controls_without_a_model_come_out_the_same() -> None:
    traces = corpus_of("controls")
    decisions = decisions_of(traces.values())
    splits, _ = make_splits(decisions)
    stored = {(row["target"], row["name"]): row for row in sample_study("controls").rows}
    seen = observe(traces, decisions, MessageTokens(embedded_counter()))
    columns = {"Length + turn": np.stack([seen.length, seen.turn], 1), "Last tool type": one_hot(seen.tools)}
    rows = rule_rows(traces, decisions, splits)
    for name, values in columns.items():
        logits = fit_columns(decisions, splits, values)
        rows += [make_row(decisions, splits, target, logits[target], {"name": name}) for target in range(2)]
    for row in rows:
        expected = stored[row["target"], row["name"]]
        assert row["test_n"] == expected["test_n"]
        assert row["seeds"] == pytest.approx(expected["seeds"], abs=2e-3)
        assert row["interval"] == pytest.approx(expected["interval"], abs=5e-3)


@pytest.mark.parametrize("target", ["compression", "recall"])
def test_the_sample_study_shows_what_the_corpus_was_made_for(target: str) -> None:
    """Data check of the committed results: what is hidden is read, what is on the surface is not, and nothing is too easy."""
    rows = {row["name"]: row["mean"] for row in sample_study("controls").rows if row["target"] == target}
    hidden, final = rows["Hidden state, preferred layer (linear)"], rows["Hidden state, final (linear)"]
    surface = (
        "Length + turn",
        "Last tool type",
        "Last action type",
        "Length + turn + tool type",
        "Recent2 TF-IDF",
        "Recent2 text embedding",
    )
    assert hidden >= max(rows[name] for name in surface) + 0.05
    assert final > rows["Length + turn"]
    assert 0.55 <= rows["Length + turn"] <= 0.80
    assert abs(rows["Shuffled labels"] - 0.5) <= 0.06
    layers = [row for row in sample_study("layerwise").rows if row["target"] == target and row.get("kind") != "shuffled"]
    by_place = {(row["layer"], row["pooling"]): row["mean"] for row in layers}
    names = {row["layer"] for row in layers}
    assert sum(by_place[name, "last"] > by_place[name, "mean"] for name in names) > len(names) * 0.6
    assert by_place["final", "last"] > by_place["final", "mean"]
    assert max(by_place.values()) <= 0.97


@pytest.mark.weights
def test_the_shipped_heads_say_again_what_the_sample_study_recorded() -> None:
    from pamer_lab.features.extract import extract
    from pamer_lab.features.values import Request
    from pamer_lab.models.frozen import load_frozen
    from pamer_lab.models.profiles import PROFILES

    model = load_frozen(PROFILES["embedded"], "cpu")
    heads = HeadSet.load(PACKAGED / "smollm2-generated").require(model.name, model.width)
    recorded = sample_study("train").decisions
    shortest = sorted(corpus_of("train").values(), key=lambda trace: sum(len(message.content) for message in trace.messages))[:FEW]
    for trace in shortest:
        own = [row for row in recorded if row["trace_id"] == trace.trace_id]
        request = Request(trace.messages, trace.tools, [row["t"] for row in own], heads.context, heads.hint, trace.trace_id)  # type: ignore[arg-type]
        states = extract([request], model, layers=[heads.layer], poolings=[heads.pooling]).vectors[:, 0, 0]
        for state, row in zip(states, own, strict=True):
            logits = heads.logits(state)
            assert logits == pytest.approx(row["logits"], abs=0.02)
            assert sum(heads.votes(logits)) == row["yes"] or row["vote_margin"] < 0.02


def test_the_shipped_heads_name_their_model_corpus_command_and_metrics() -> None:
    heads = HeadSet.load(PACKAGED / "smollm2-generated")
    trained = sample_study("train")
    assert heads.seeds == (0, 1, 2, 3, 4)
    assert heads.stack.capacity == "mlp"
    assert (heads.context, heads.pooling, heads.target) == ("recent2", "last", "compression")
    assert heads.facts["command"] == trained.command
    assert heads.facts["corpus"] == trained.corpus
    student = next(row for row in trained.rows if row["target"] == "compression" and row["name"] == "Recent2 + decision KD")
    assert heads.facts["metrics"]["auroc"]["seeds"] == pytest.approx(student["seeds"], abs=1e-5)
    assert np.log(np.array(heads.thresholds) / (1 - np.array(heads.thresholds))) == pytest.approx(student["thresholds"], abs=1e-4)
