"""The tables of a study, row by row, against the same probes trained one at a time and measured by scikit-learn."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pamer_lab.probes.readout import sigmoid
from pamer_lab.probes.split import TEST, TRAIN, VALIDATION, Split
from pamer_lab.studies.controls import hidden_rows
from pamer_lab.studies.decisions import TARGETS, Decisions, decisions_of, make_splits
from pamer_lab.studies.distill import Lab, capacity_rows, student_rows
from pamer_lab.studies.layerwise import layerwise
from pamer_lab.studies.tables import compare
from tests.studies.small_study import bank, corpus, differences, grid_data, measure, train_alone

CLOSE = 0.02
"""Training in float32 and in float64 differ by less; margins are stored in half precision."""
Small = tuple[Decisions, tuple[Split, ...]]


@pytest.fixture(scope="module")
def study() -> Small:
    decisions = decisions_of(corpus().values())
    return decisions, make_splits(decisions, (0, 1))[0]


def off(study: Small, row: dict, features: np.ndarray, capacity: str = "linear", teacher: np.ndarray | None = None) -> dict[str, float]:
    """What is wrong in a row, by seed; empty where it is what training alone gives."""
    decisions, splits = study
    target = TARGETS.index(row["target"])
    wrong = {}
    for number, split in enumerate(splits):
        logits, _ = train_alone(grid_data(decisions, splits, features, teacher), target, number, capacity)
        found = differences(row, number, measure(decisions, split, target, logits))
        wrong |= {f"seed {number} {name}": value for name, value in found.items() if abs(value) > CLOSE}
    return wrong


def test_the_parts_of_a_split_share_no_question_and_the_test_part_is_15_percent(study: Small) -> None:
    decisions, splits = study
    for split in splits:
        asked = [{question for question, part in zip(decisions.questions, split.part, strict=True) if part == own} for own in range(3)]
        assert [len(asked[part]) for part in (TRAIN, VALIDATION, TEST)] == [14, 3, 3]
        assert not asked[TRAIN] & asked[TEST] and not asked[VALIDATION] & asked[TEST]


def test_hidden_rows_are_the_last_token_probes_of_the_final_state_and_of_the_layer_validation_prefers(study: Small) -> None:
    decisions, splits = study
    vectors = bank(decisions)
    turned = replace(vectors, vectors=vectors.vectors[::-1].copy())  # the signal is in block_1
    rows, chosen = hidden_rows(decisions, splits, turned, resamples=20)
    assert chosen == {"compression": "block_1", "recall": "block_1"}
    hidden = [row for row in rows if row["kind"] == "hidden"]
    assert [(row["target"], row["layer"]) for row in hidden] == [(target, layer) for target in TARGETS for layer in ("final", "block_1")]
    for row in hidden:
        assert off(study, row, turned.of(row["layer"])) == {}
        assert (row["mean"] > 0.8) == (row["layer"] == "block_1")


def test_layerwise_rows_are_the_probes_of_their_own_layer_and_pooling(study: Small) -> None:
    decisions, splits = study
    vectors = bank(decisions, 0.25)
    rows = [row for row in layerwise(decisions, splits, vectors, resamples=20) if row.get("kind") != "shuffled"]
    places = [(row["target"], row["layer"], row["pooling"]) for row in rows]
    assert places == list(itertools.product(TARGETS, ("block_1", "final"), ("last", "mean")))
    for row in rows:
        assert off(study, row, vectors.of(row["layer"], row["pooling"])) == {}


def test_capacity_rows_are_linear_and_mlp_probes_with_and_without_hint(study: Small) -> None:
    decisions, splits = study
    banks = {"none": bank(decisions, 0.15), "faithful": bank(decisions, 0.3, hint="faithful")}
    rows, fits = capacity_rows(Lab(decisions, splits, resamples=20), banks, {"final": "final"})
    assert [(row["hint"], row["capacity"]) for row in rows[::2]] == list(itertools.product(("none", "faithful"), ("linear", "mlp")))
    for row in rows:
        assert off(study, row, banks[row["hint"]].of("final"), row["capacity"]) == {}
    means = {(row["target"], row["hint"], row["capacity"]): row["mean"] for row in rows}
    assert all(means[target, "faithful", "mlp"] > means[target, "none", "mlp"] for target in TARGETS)
    teacher = fits["final", "faithful"]
    alone, _ = train_alone(grid_data(decisions, splits, banks["faithful"].of("final")), 0, 1, "mlp")
    assert np.abs(teacher.logits[0, 1] - alone).max() < CLOSE


def test_students_learn_from_labels_and_half_of_their_own_seeds_teacher(study: Small) -> None:
    decisions, splits = study
    lab = Lab(decisions, splits, resamples=20)
    teacher = lab.fit("teacher", bank(decisions, 0.4, hint="faithful"), "final", "mlp")
    compact = bank(decisions, 0.2, context="recent2")
    rows, compared, student = student_rows(lab, compact, "final", teacher, "Recent2")
    scores = sigmoid(teacher.logits).astype(np.float32)
    for row in rows:
        taught = row["name"] == "Recent2 + decision KD"
        assert off(study, row, compact.of("final"), "mlp", scores if taught else None) == {}
    plain, taught = rows[:2], rows[2:]
    assert [row["target"] for row in plain] == [row["target"] for row in taught] == list(TARGETS)
    pairs = [(one, other, metric) for one, other in zip(taught, plain, strict=True) for metric in ("auroc", "f1")]
    for found, (one, other, metric) in zip(compared, pairs, strict=True):
        assert found["mean"] == pytest.approx(one["metrics"][metric]["mean"] - other["metrics"][metric]["mean"])
    assert np.abs(student.logits[:, 0] - teacher.logits[:, 0]).max() > 0.1


def test_a_comparison_is_the_mean_difference_and_its_sign_flip_p() -> None:
    def row(name: str, values: list[float]) -> dict:
        return {"name": name, "target": "recall", "n": 7, "metrics": {"auroc": {"seeds": values}, "f1": {"seeds": values[::-1]}}}

    first, second = row("a", [0.75, 0.5, 0.625, 0.5, 0.75]), row("b", [0.5, 0.375, 0.5, 0.625, 0.5])
    found = compare(first, second)
    # Differences in eighths: 2, 1, 1, -1, 2. A sum of 5 or more in size comes from 8 of the 32 choices of signs.
    assert found["seeds"] == [0.25, 0.125, 0.125, -0.125, 0.25]
    assert found["mean"] == pytest.approx(0.125)
    assert found["sd"] == pytest.approx(np.std([0.25, 0.125, 0.125, -0.125, 0.25], ddof=1))
    assert found["p"] == 8 / 32
    assert (found["comparison"], found["target"], found["n"]) == ("a - b", "recall", 7)
    assert compare(second, first)["mean"] == -found["mean"]
    assert compare(first, second, "f1")["seeds"] == found["seeds"][::-1]
