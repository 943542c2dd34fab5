"""Packed test scores: nothing changes sides, and counts agree with the F1 of the row."""

import numpy as np
import pytest

from pamer_lab.probes.intervals import Scored
from pamer_lab.probes.margins import confusion, pack, unpack
from pamer_lab.probes.metrics import f1


def scored(seed: int, threshold: float) -> Scored:
    rng = np.random.default_rng(seed)
    labels = rng.random(300) < 0.3
    return Scored(rng.normal(size=300) + labels, labels, np.arange(300), threshold)


def test_counts_at_the_stored_threshold_are_those_of_the_exact_scores() -> None:
    seeds = [scored(0, 0.31), scored(1, -1.2)]
    kept = unpack({"margins": pack(seeds)})
    for one, own in zip(seeds, kept, strict=True):
        counts = confusion([own])
        called = one.logits >= one.threshold
        assert (counts.hits, counts.false_alarms) == ((called & one.labels).sum(), (called & ~one.labels).sum())
        assert counts.f1 == pytest.approx(float(f1(called, one.labels)))
    both = confusion(kept)
    assert both.hits + both.misses == sum(one.labels.sum() for one in seeds)
    assert both.hits + both.misses + both.false_alarms + both.rejections == 600


def test_a_score_that_touches_its_threshold_stays_on_its_side() -> None:
    near = np.array([1.0, 1.0 + 1e-9, 1.0 - 1e-9])
    kept = unpack({"margins": pack([Scored(near, np.array([True, True, True]), np.arange(3), 1.0)])})
    counts = confusion(kept)
    assert (counts.hits, counts.misses) == (2, 1)


def test_moving_the_threshold_trades_misses_for_false_alarms() -> None:
    kept = unpack({"margins": pack([scored(0, 0.5)])})
    low, high = confusion(kept, -1.0), confusion(kept, 1.0)
    assert low.hits > high.hits
    assert low.false_alarms > high.false_alarms
    assert confusion(kept, 99.0).hits == 0
    assert np.isnan(confusion(kept, 99.0).precision)


def test_a_row_of_an_older_study_holds_none() -> None:
    assert unpack({"name": "x"}) == []
