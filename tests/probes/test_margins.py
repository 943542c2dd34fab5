"""Packed test scores: nothing changes sides, and counts agree with the F1 of the row.

Margins say exactly how far a decision is from flipping; the paper's bounds hold.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.memory.session import assemble
from pamer_lab.probes.margins import confusion, pack, unpack, vote_margins
from pamer_lab.probes.metrics import Scored, auroc, f1
from tests.memory.test_session import memory
from tests.probes.theory import auroc_bound, disagreement_bound, retrieval_margin


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


five = st.lists(st.integers(-40, 40).map(lambda value: value / 8 + 0.0625), min_size=5, max_size=5)


@given(five, five, st.integers(1, 5))
def test_no_shift_below_the_margin_flips_the_majority_and_one_above_does(logits: list[float], cuts: list[float], needed: int) -> None:
    z, a = np.array(logits), np.array(cuts)
    found = vote_margins(z, a, needed)
    decision = (z >= a).sum() >= needed
    against = -1.0 if decision else 1.0
    assert ((z + against * (found.majority - 1e-6) >= a).sum() >= needed) == decision
    assert ((z + against * (found.majority + 1e-6) >= a).sum() >= needed) != decision
    assert found.vote == min(found.heads)
    assert found.yes == (z >= a).sum()


def test_three_steady_heads_hold_the_majority_whatever_the_others_do() -> None:
    found = vote_margins([5.0, 5.0, 5.0, 0.01, -0.01], [0.0] * 5)
    assert found.vote == pytest.approx(0.01)
    assert found.majority == 5.0


@given(st.integers(0, 10_000), five)
def test_a_majority_errs_at_most_a_third_as_often_as_its_heads_together(seed: int, cuts: list[float]) -> None:
    rng = np.random.default_rng(seed)
    needed = rng.random(60) < 0.5
    logits = rng.normal(size=(60, 1)) + rng.normal(size=(60, 5)) * rng.uniform(0, 2)  # heads that err together, more or less
    votes = [vote_margins(row, cuts) for row in logits]
    majority = np.array([vote.yes >= 3 for vote in votes])
    heads = (logits >= np.array(cuts)) != needed[:, None]
    assert (majority != needed).mean() <= min(1.0, heads.mean(0).sum() / 3) + 1e-12


def test_a_retrieval_margin_is_the_gap_at_the_cut() -> None:
    found = retrieval_margin([0.9, 0.2, 0.7, 0.5], 3)
    assert found.margin == pytest.approx(0.3)
    assert found.safe_shift == pytest.approx(0.15)
    assert retrieval_margin([0.9, 0.2], 3).margin == float("inf")


@given(st.integers(0, 10_000), st.floats(0.0, 1.0, exclude_max=True))
def test_scores_that_move_less_than_the_safe_shift_keep_the_same_memories(seed: int, part: float) -> None:
    rng = np.random.default_rng(seed)
    query = np.eye(3)[0]

    def nearest(scores: np.ndarray) -> set[int]:
        """What a session recalls when its summaries have these cosines to the query."""
        vectors = np.stack([scores, np.sqrt(1 - scores**2), np.zeros(9)], 1)
        session = assemble("s", [memory(number, vector) for number, vector in enumerate(vectors)])
        return {found.sequence for found in session.nearest(query, 3, embedding_model="e")}

    scores = rng.uniform(-0.9, 0.9, 9)
    moved = scores + rng.uniform(-1, 1, 9) * retrieval_margin(scores, 3).safe_shift * 0.99 * part
    assert nearest(scores) == set(np.argsort(-scores)[:3])
    assert nearest(np.clip(moved, -1, 1)) == nearest(scores)


@given(st.integers(0, 10_000), st.floats(0.0, 2.0))
def test_disagreement_and_auroc_stay_within_the_papers_bounds(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    full, labels = rng.normal(size=40), np.arange(40) % 3 == 0
    compact = full + rng.uniform(-shift, shift, 40)
    assert ((full >= 0.2) != (compact >= 0.2)).mean() <= disagreement_bound(full, 0.2, shift)
    assert abs(auroc(full, labels) - auroc(compact, labels)) <= auroc_bound(full, labels, shift) + 1e-12


def test_a_linear_readout_moves_at_most_by_the_weights_norm_times_the_change() -> None:
    rng = np.random.default_rng(0)
    weight, full = rng.normal(size=8), rng.normal(size=(50, 8))
    compact = full + rng.normal(size=(50, 8)) * 0.1
    shift = np.linalg.norm(weight) * np.linalg.norm(full - compact, axis=1).max()
    z_full, z_compact = full @ weight, compact @ weight
    assert np.abs(z_full - z_compact).max() <= shift
    steady = np.array([vote_margins([z], [0.3], needed=1).vote for z in z_full]) > shift
    assert 0 < steady.sum() < 50
    assert ((z_full >= 0.3) == (z_compact >= 0.3))[steady].all()
    moved = [vote_margins([z], [0.3], needed=1).yes for z in z_compact[steady]]
    assert moved == [vote_margins([z], [0.3], needed=1).yes for z in z_full[steady]]
