"""Rows, controls and students on a small made-up corpus; no model, no weights."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.probes.metrics import auroc, f1
from pamer_lab.probes.split import TEST, VALIDATION, Split
from pamer_lab.studies.controls import hidden_rows, observable_rows, rule_rows
from pamer_lab.studies.decisions import Decisions, decisions_of, make_splits
from pamer_lab.studies.distill import Lab, agreement, capacity_rows, make_heads, student_rows
from pamer_lab.studies.layerwise import layerwise, preferred_layer, shuffled_labels
from pamer_lab.studies.observables import action_type, observe, recent2_texts
from pamer_lab.studies.tables import compare, make_row
from pamer_lab.trajectory.values import Message, ToolCall, Trace
from tests.studies.small_study import bank, corpus


@pytest.fixture(scope="module")
def study() -> tuple[dict[str, Trace], Decisions, tuple[Split, ...]]:
    traces = corpus()
    decisions = decisions_of(traces.values())
    return traces, decisions, make_splits(decisions, (0, 1))[0]


def test_a_row_uses_validation_for_its_threshold_and_test_rows_for_its_numbers(study: tuple) -> None:
    _, decisions, splits = study
    logits = np.random.default_rng(2).normal(size=(2, len(decisions))) + decisions.labels[0]
    row = make_row(decisions, splits, 0, logits, {"name": "x"}, resamples=50)
    test, valid = splits[1].rows(TEST) & decisions.counts[0], splits[1].rows(VALIDATION) & decisions.counts[0]
    assert row["seeds"][1] == pytest.approx(float(auroc(logits[1, test], decisions.labels[0, test])))
    assert row["metrics"]["f1"]["seeds"][1] == pytest.approx(float(f1(logits[1, test] >= row["thresholds"][1], decisions.labels[0, test])))
    cuts = logits[1, valid]
    best = max(float(f1(cuts >= cut, decisions.labels[0, valid])) for cut in cuts)
    assert float(f1(cuts >= row["thresholds"][1], decisions.labels[0, valid])) == pytest.approx(best)
    assert row["test_n"][1] == test.sum()
    assert row["n"] == decisions.counts[0].sum()
    assert row["base_rate"] == pytest.approx(decisions.labels[0].mean())


def test_controls_find_what_is_on_the_surface_and_nothing_else(study: tuple) -> None:
    traces, decisions, splits = study
    rows = observable_rows(traces, decisions, splits, MessageTokens(EstimatedCounter()), HashingEmbedder(), resamples=20)
    found = {(row["target"], row["name"]): row["mean"] for row in rows}
    assert len(found) == 12
    assert found["compression", "Last tool type"] > 0.95
    assert found["compression", "Length + turn + tool type"] > 0.95
    assert found["compression", "Recent2 TF-IDF"] > 0.7
    assert abs(found["recall", "Last tool type"] - 0.5) < 0.15
    rules = rule_rows(traces, decisions, splits, resamples=20)
    assert len(rules) == 6
    assert {tuple(row["test_n"]) for row in rows + rules if row["target"] == "recall"} == {tuple(rules[-1]["test_n"])}


def test_length_counts_what_lies_before_the_decision_and_types_come_from_the_last_action(study: tuple) -> None:
    traces, decisions, _ = study
    tokens = MessageTokens(EstimatedCounter())
    seen = observe(traces, decisions, tokens)
    trace_id, t = decisions.keys[4]
    assert seen.length[4] == tokens.total(traces[trace_id].messages[: 1 + 2 * t])
    assert seen.turn[4] == t
    assert seen.tools[4] == traces[trace_id].messages[1 + 2 * (t - 1)].tool_calls[0].name
    text = recent2_texts(traces, decisions)[4]
    assert f"word{t - 1}" in text
    assert f"word{t}" not in text
    assert f"word{t - 3}" not in text


def test_action_types_tell_families_answers_and_several_calls_apart() -> None:
    one, two = ToolCall("a", "web_search"), ToolCall("b", "read_file")
    assert action_type(Message("assistant", "done")) == "answer"
    assert action_type(Message("assistant", "", (one,))) == "search"
    assert action_type(Message("assistant", "so", (two,))) == "read with text"
    assert action_type(Message("assistant", "", (one, two))) == "several read"
    assert action_type(Message("assistant", "", (ToolCall("c", "frobnicate"),))) == "other"


def test_the_layerwise_rows_show_where_the_signal_is(study: tuple) -> None:
    _, decisions, splits = study
    rows = layerwise(decisions, splits, bank(decisions), resamples=20)
    shuffled = [row for row in rows if row.get("kind") == "shuffled"]
    assert [(row["target"], row["layer"]) for row in shuffled] == [
        (target, layer) for target in ("compression", "recall") for layer in ("block_1", "final")
    ]
    assert all(abs(row["mean"] - 0.5) < 0.2 for row in shuffled)
    rows = [row for row in rows if row not in shuffled]
    assert len(rows) == 8
    found = {(row["target"], row["layer"], row["pooling"]): row["mean"] for row in rows}
    for target in ("compression", "recall"):
        assert found[target, "final", "last"] > 0.85
        assert abs(found[target, "final", "mean"] - 0.5) < 0.2
        assert preferred_layer(rows, target) == "final"


def test_hidden_rows_name_the_preferred_layer_and_shuffled_labels_find_nothing(study: tuple) -> None:
    _, decisions, splits = study
    rows, chosen = hidden_rows(decisions, splits, bank(decisions), resamples=20)
    assert chosen == {"compression": "final", "recall": "final"}
    shuffled = [row for row in rows if row["kind"] == "shuffled"]
    assert len(shuffled) == 2
    assert all(abs(row["mean"] - 0.5) < 0.2 for row in shuffled)


def test_shuffled_labels_keep_the_classes_of_every_part_and_differ_between_seeds(study: tuple) -> None:
    _, decisions, splits = study
    for target in range(2):
        labels = shuffled_labels(decisions, splits, target)
        for number, split in enumerate(splits):
            for part in range(3):
                rows = split.rows(part) & decisions.counts[target]
                assert labels[number, rows].sum() == decisions.labels[target, rows].sum()
            assert not np.array_equal(labels[number], decisions.labels[target])
        assert not np.array_equal(labels[0], labels[1])


def test_students_learn_from_their_teacher_and_become_heads(study: tuple) -> None:
    _, decisions, splits = study
    lab = Lab(decisions, splits, resamples=20)
    faithful = bank(decisions, 0.5, hint="faithful")
    rows, fits = capacity_rows(lab, {"none": bank(decisions, 0.4), "faithful": faithful}, {"final": "final"})
    assert [row["name"] for row in rows[::2]] == [
        "No hint, linear (final)",
        "No hint, MLP (final)",
        "Faithful hint, linear (final)",
        "Faithful hint, MLP (final)",
    ]
    compact = bank(decisions, 0.3, context="recent2")
    own, compared, student = student_rows(lab, compact, "final", fits["final", "faithful"], "Recent2")
    assert [row["name"] for row in own] == ["Recent2"] * 2 + ["Recent2 + decision KD"] * 2
    assert [row["metric"] for row in compared] == ["auroc", "f1"] * 2
    assert compared[0]["p"] in (0.5, 1.0)
    model: Any = SimpleNamespace(name="Some-Model", fingerprint="of-its-weights")
    heads = make_heads(lab, student, compact, model, "Watch the memory.", {"why": "test"})
    assert (heads.layer, heads.model_name, heads.model_fingerprint) == ("final", "Some-Model", "of-its-weights")
    assert heads.probe_system_prompt == "Watch the memory."
    assert heads.seeds == (0, 1)
    assert np.abs(heads.logits(compact.of("final")[7]) - student.logits[0, :, 7]).max() < 1e-3
    said = np.array([heads.votes(heads.logits(vector)) for vector in compact.of("final")[:50]])
    cuts = next(row["thresholds"] for row in own if row["target"] == "compression" and "KD" in row["name"])
    expected = np.array(cuts) <= student.logits[0, :, :50].T
    assert (said == expected).mean() > 0.99


def test_agreement_is_full_with_oneself_and_comparisons_are_paired(study: tuple) -> None:
    _, decisions, splits = study
    logits = np.random.default_rng(3).normal(size=(2, len(decisions)))
    assert agreement(decisions, splits, 1, logits, logits)["seeds"] == [1.0, 1.0]
    better = make_row(decisions, splits, 1, logits + decisions.labels[1], {"name": "a"}, resamples=0)
    worse = make_row(decisions, splits, 1, logits, {"name": "b"}, resamples=0)
    found = compare(better, worse)
    assert found["comparison"] == "a - b"
    assert found["seeds"] == pytest.approx([one - other for one, other in zip(better["seeds"], worse["seeds"], strict=True)])
    assert found["p"] == 0.5
