"""Intervals resample questions, and the sign-flip test is exact."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.probes.intervals import Scored, sign_flip, summarise
from pamer_lab.probes.metrics import auroc


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
