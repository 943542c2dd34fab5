"""Metrics against scikit-learn, on random and degenerate data.

Intervals resample questions, and the sign-flip test is exact.
"""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from pamer_lab.probes import metrics
from pamer_lab.probes.metrics import Scored, auprc, auroc, best_thresholds, f1, logit_gap, sign_flip, summarise, wilson

cases = st.integers(2, 60).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-3, 3), min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
    )
)


@given(cases)
@settings(max_examples=200)
def test_metrics_equal_those_of_scikit_learn_ties_included(case: tuple[list[int], list[bool], list[int]]) -> None:
    scores, labels = np.array(case[0], dtype=float), np.array(case[1])
    both = labels.any() and not labels.all()
    assert np.isnan(auroc(scores, labels)) if not both else np.isclose(auroc(scores, labels), roc_auc_score(labels, scores))
    assert (
        np.isnan(auprc(scores, labels)) if not labels.any() else np.isclose(auprc(scores, labels), average_precision_score(labels, scores))
    )
    decided = scores >= 1
    expected = f1_score(labels, decided, zero_division=np.nan)
    assert np.isclose(f1(decided, labels), expected, equal_nan=True)


@given(cases)
def test_a_weight_counts_a_row_that_many_times(case: tuple[list[int], list[bool], list[int]]) -> None:
    scores, labels, weights = np.array(case[0], dtype=float), np.array(case[1]), np.array(case[2])
    for metric in (auroc, auprc, logit_gap, lambda s, y, w=None: f1(s >= 1, y, w)):
        repeated = metric(np.repeat(scores, weights), np.repeat(labels, weights)) if weights.sum() else np.nan
        assert np.isclose(metric(scores, labels, weights), repeated, equal_nan=True)


def test_many_score_lists_at_once_equal_one_at_a_time() -> None:
    rng = np.random.default_rng(0)
    scores, labels = np.round(rng.normal(size=(3, 4, 50)), 1), rng.random(50) < 0.3
    weights = rng.integers(0, 3, size=(6, 50))
    for metric in (auroc, auprc, logit_gap):
        together = metric(scores, labels)
        assert together.shape == (3, 4)
        assert np.isclose(together[2, 1], metric(scores[2, 1], labels))
        assert np.isclose(metric(scores[0, 0], labels, weights)[5], metric(scores[0, 0], labels, weights[5]))


@pytest.mark.parametrize("labels", [np.zeros(5, dtype=bool), np.ones(5, dtype=bool)])
def test_one_class_leaves_the_ranking_undefined_as_in_scikit_learn(labels: np.ndarray) -> None:
    scores = np.arange(5.0)
    assert np.isnan(auroc(scores, labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(roc_auc_score(labels, scores))
    assert np.isnan(auprc(scores, labels)) if not labels.any() else auprc(scores, labels) == 1.0
    assert np.isnan(logit_gap(scores, labels))


def test_all_ties_rank_at_one_half_and_at_the_base_rate() -> None:
    labels = np.array([True, False, False, False])
    assert auroc(np.zeros(4), labels) == 0.5 == roc_auc_score(labels, np.zeros(4))
    assert auprc(np.zeros(4), labels) == 0.25 == average_precision_score(labels, np.zeros(4))


def test_a_score_that_is_nan_leaves_its_own_list_undefined_and_infinities_rank() -> None:
    labels = np.array([False, False, True, True])
    scores = np.array([[0.0, 1.0, 2.0, 3.0], [np.nan] * 4, [0.0, 1.0, np.nan, 3.0]])
    for metric in (auroc, auprc):
        assert metric(scores, labels)[0] == 1.0
        assert np.isnan(metric(scores, labels)[1:]).all()
        assert metric(np.array([-np.inf, 0.0, 1.0, np.inf]), labels) == 1.0
    assert np.isnan(logit_gap(scores, labels)[1:]).all()
    assert np.isnan(logit_gap(np.array([0.0, -np.inf, 1.0, 2.0]), labels))


@given(st.floats(0.1, 10.0), st.floats(-5.0, 5.0), st.integers(0, 100))
def test_an_affine_map_scales_the_gap_and_leaves_auroc_alone(slope: float, shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, labels = rng.integers(-4, 5, size=30).astype(float), np.arange(30) % 3 == 0
    mapped = slope * logits + shift
    assert auroc(mapped, labels) == pytest.approx(float(auroc(logits, labels)), abs=1e-12)
    assert logit_gap(mapped, labels) == pytest.approx(slope * float(logit_gap(logits, labels)), abs=1e-9)


def test_the_gap_of_a_linear_probe_is_its_weight_on_the_difference_of_means() -> None:
    rng = np.random.default_rng(1)
    rows, labels, weight = rng.normal(size=(40, 6)), np.arange(40) % 4 == 0, rng.normal(size=6)
    assert np.isclose(logit_gap(rows @ weight + 3.0, labels), weight @ (rows[labels].mean(0) - rows[~labels].mean(0)))


@given(cases, st.sampled_from([0.0, -100.0, 18.0]))
def test_the_threshold_has_the_best_validation_f1_of_all(case: tuple[list[int], list[bool], list[int]], shift: float) -> None:
    logits, labels = np.array(case[0], dtype=float) + shift, np.array(case[1])
    chosen = float(best_thresholds(logits, labels))
    if labels.any():
        tried = [float(f1(logits >= theta, labels)) for theta in np.unique(np.concatenate([logits, logits + 0.5, logits - 0.5]))]
        assert f1(logits >= chosen, labels) == pytest.approx(np.nanmax(tried))
    else:
        assert not (logits >= chosen).any()


def test_thresholds_of_many_probes_equal_one_at_a_time() -> None:
    rng = np.random.default_rng(2)
    logits, labels = rng.normal(size=(7, 30)), rng.random(30) < 0.4
    assert np.array_equal(best_thresholds(logits, labels), [best_thresholds(row, labels) for row in logits])


def scored(seed: int, questions: int = 30, per_question: int = 8) -> Scored:
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(questions), per_question)
    labels = rng.random(len(number)) < 0.3
    return Scored(labels * 1.0 + rng.normal(size=len(number)), labels, number, 0.5)


def test_a_summary_has_mean_sd_seeds_and_an_interval_around_the_mean() -> None:
    parts = [scored(seed) for seed in range(5)]
    found = summarise(parts)["auroc"]
    values = [float(auroc(part.logits, part.labels)) for part in parts]
    assert found["seeds"] == values
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["sd"] == pytest.approx(np.std(values, ddof=1))
    assert found["interval"][0] < found["mean"] < found["interval"][1]
    assert summarise(parts) == summarise(parts)


def test_the_bootstrap_resamples_questions_not_rows() -> None:
    """Copies of the same row within a question carry no new information, so the interval must not shrink."""
    one = scored(0, per_question=4)
    copied = Scored(np.repeat(one.logits, 10), np.repeat(one.labels, 10), np.repeat(one.questions, 10), one.threshold)
    narrow, wide = summarise([copied])["auroc"]["interval"], summarise([one])["auroc"]["interval"]
    assert narrow == pytest.approx(wide)


def test_a_resample_without_positives_is_left_out_not_counted_as_zero() -> None:
    labels = np.array([True, False, False, False])
    part = Scored(np.array([2.0, 1.0, 0.0, -1.0]), labels, np.arange(4), 1.5)
    assert summarise([part])["auroc"]["interval"] == [1.0, 1.0]


def test_five_seeds_on_one_side_give_the_least_p_there_is() -> None:
    assert sign_flip([0.1, 0.2, 0.05, 0.3, 0.1]) == 0.0625
    assert sign_flip([0.0] * 5) == 1.0


def test_what_is_not_defined_is_nan_and_never_significant() -> None:
    assert np.isnan(sign_flip([float("nan")] * 5))
    assert np.isnan(sign_flip([0.1, float("inf"), 0.2]))
    part = Scored(np.full(4, np.nan), np.array([True, False, True, False]), np.arange(4), 0.0)
    found = summarise([part], 10)
    assert all(np.isnan(metric["mean"]) and metric["interval"] is None for metric in found.values())


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=6))
def test_the_sign_flip_p_is_the_enumerated_share_and_never_below_its_floor(values: list[int]) -> None:
    count = sum(
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True))) >= abs(sum(values))
        for signs in product((-1, 1), repeat=len(values))
    )
    assert sign_flip([value / 100 for value in values]) == count / 2 ** len(values)
    assert sign_flip([float(value) for value in values]) >= 2 / 2 ** len(values)


def test_the_sign_flip_p_of_many_differences_equals_the_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    drawn = [
        differences
        for size in (1, 2, 5, 11)
        for differences in (draw.integers(-1, 2, size).astype(float), draw.normal(0.3, 1, size), draw.integers(-9000, 20000, size) * 1.0)
    ]
    enumerated = [sign_flip(differences) for differences in drawn]
    monkeypatch.setattr(metrics, "MOST_DIFFERENCES", 0)
    assert [sign_flip(differences) for differences in drawn] == pytest.approx(enumerated, abs=2e-3)
    assert sign_flip(np.ones(100)) == pytest.approx(2.0**-99)
    assert sign_flip(np.zeros(4)) == 1.0


def test_wilsons_interval_is_within_bounds() -> None:
    assert wilson(0, 10)[0] == 0.0 and wilson(10, 10)[1] == pytest.approx(1.0) and wilson(10, 10)[1] <= 1.0
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-3)
