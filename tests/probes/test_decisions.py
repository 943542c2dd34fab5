"""What counts as a decision, and what its label is."""

import numpy as np
import pytest

from pamer_lab.errors import InputError
from pamer_lab.probes.decisions import decisions_of, make_splits
from pamer_lab.trajectory.values import Label, Message, Trace


def trace(number: int, labels: list[Label], turns: int = 6) -> Trace:
    messages = [Message("user", "task")] + [Message("assistant", f"step {step}") for step in range(turns)]
    return Trace(f"t{number}", f"q{number // 2}", "test", tuple(messages), labels=tuple(labels))


def test_a_point_without_a_label_is_negative_and_recall_needs_memory() -> None:
    found = decisions_of([trace(0, [Label(2, "compression"), Label(4, "recall"), Label(1, "recall")])])
    assert [t for _, t in found.keys] == [1, 2, 3, 4, 5]
    assert found.labels[0].tolist() == [False, True, False, False, False]
    assert found.counts[1].tolist() == [False, False, True, True, True]
    assert (found.labels[1] & found.counts[1]).tolist() == [False, False, False, True, False]


def test_written_negatives_mean_that_only_labelled_points_count() -> None:
    found = decisions_of([trace(0, [Label(2, "compression"), Label(3, "compression", value=False), Label(4, "recall")])])
    assert [t for _, t in found.keys] == [2, 3, 4, 5]
    assert found.counts[0].tolist() == [True, True, False, False]


def test_a_models_positive_answers_say_nothing_about_points_it_was_not_asked_about() -> None:
    found = decisions_of([trace(0, [Label(2, "compression", origin="judge"), Label(4, "compression", origin="judge")])])
    assert [t for _, t in found.keys] == [2, 4]
    mixed = decisions_of([trace(0, [Label(2, "compression", origin="judge"), Label(4, "compression", origin="memory-operation")])])
    assert [t for _, t in mixed.keys] == [2, 4]
    for origin in ("native", "side-file", "memory-operation", "generator"):
        assert len(decisions_of([trace(0, [Label(2, "compression", origin=origin)])])) == 5


def test_a_target_without_any_label_is_not_asked() -> None:
    found = decisions_of([trace(0, [Label(2, "compression")])])
    assert found.counts[0].all()
    assert not found.counts[1].any()


def test_a_need_seen_by_one_of_two_origins_is_a_need() -> None:
    both = [Label(4, "recall", value=True, origin="a"), Label(4, "recall", value=False, origin="b"), Label(3, "recall", value=False)]
    found = decisions_of([trace(0, both)])
    assert found.labels[1].tolist() == [False, True]


def test_traces_without_labels_are_left_out_and_none_at_all_is_refused() -> None:
    assert len({key for key, _ in decisions_of([trace(0, []), trace(1, [Label(2, "recall")])]).keys}) == 1
    with pytest.raises(InputError, match="pamer-lab annotate"):
        decisions_of([trace(0, [])])


def test_the_corpus_hash_follows_the_labels_and_not_the_order_of_files() -> None:
    one, two = trace(0, [Label(2, "compression")]), trace(1, [Label(3, "compression")])
    assert decisions_of([one, two]).corpus == decisions_of([two, one]).corpus
    assert decisions_of([one, two]).corpus != decisions_of([one, trace(1, [Label(4, "compression")])]).corpus


def test_splits_are_refused_where_a_part_has_no_positive_of_a_target() -> None:
    traces = [trace(number, [Label(2, "compression")]) for number in range(40)]
    with pytest.raises(InputError, match=r"no recall label at decision point 3 or later.*pamer-lab annotate"):
        make_splits(decisions_of(traces))
    for seen in traces[:2]:  # one question
        traces.append(trace(int(seen.trace_id[1:]) + 100, [Label(2, "compression"), Label(4, "recall")]))
    with pytest.raises(InputError, match="has no positive recall decision"):
        make_splits(decisions_of(traces))


def test_splits_carry_their_leak_check() -> None:
    traces = [trace(number, [Label(2, "compression"), Label(4, "recall")]) for number in range(40)]
    decisions = decisions_of(traces)
    splits, checks = make_splits(decisions)
    assert len(splits) == 5
    assert all(check.shared == () for check in checks)
    assert checks[0].sentence == "14 training, 3 validation, 3 test questions; none in two parts"
    assert decisions.question_numbers.max() == 19
    assert decisions.facts()["positives"] == {"compression": 40, "recall": 40}
    assert np.isin(splits[0].part, [0, 1, 2]).all()
