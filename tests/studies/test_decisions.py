"""What counts as a decision, what its label is, and seeded samples by question with positives and negatives in their shares."""

from collections import Counter

import msgspec
import numpy as np
import pytest

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.errors import InputError
from pamer_lab.probes.split import leaks
from pamer_lab.studies.decisions import Decisions, decisions_of, make_splits, sample, with_origin
from pamer_lab.studies.observables import observe, recent2_texts
from pamer_lab.trajectory.recorded import HISTORIES
from pamer_lab.trajectory.values import Event, Label, Message, Trace


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
    with pytest.raises(InputError, match=r"recall.*\b3\b.*pamer-lab annotate"):
        make_splits(decisions_of(traces))
    for seen in traces[:2]:  # one question
        traces.append(trace(int(seen.trace_id[1:]) + 100, [Label(2, "compression"), Label(4, "recall")]))
    with pytest.raises(InputError, match=r"positive.*recall"):
        make_splits(decisions_of(traces))


def test_splits_carry_their_leak_check() -> None:
    traces = [trace(number, [Label(2, "compression"), Label(4, "recall")]) for number in range(40)]
    decisions = decisions_of(traces)
    splits, checks = make_splits(decisions)
    assert len(splits) == 5
    assert all(check.shared == () for check in checks)
    assert list(checks[0].questions.values()) == [14, 3, 3] and leaks(check.sentence for check in checks) == 0
    assert decisions.question_numbers.max() == 19
    assert decisions.facts()["positives"] == {"compression": 40, "recall": 40}
    assert np.isin(splits[0].part, [0, 1, 2]).all()


def compacted(number: int, labels: list[Label]) -> Trace:
    """Before message 3, which is turn 2, a summary took the place of the first two turns."""
    return msgspec.structs.replace(trace(number, labels), events=(Event("compaction", 3, "so far", replaced=((1, 3),)),))


def test_recorded_history_asks_recall_from_the_first_operation_on_and_full_history_from_point_three() -> None:
    one = compacted(0, [Label(2, "compression"), Label(4, "recall")])
    recorded, full = decisions_of([one], "recorded"), decisions_of([one])
    assert recorded.counts[1].tolist() == [False, True, True, True, True]
    assert full.counts[1].tolist() == [False, False, True, True, True]
    assert recorded.corpus != full.corpus


def test_recorded_history_leaves_traces_without_operations_as_they_are_and_counts_the_others() -> None:
    labels = [Label(2, "compression"), Label(4, "recall")]
    plain, both = [trace(1, labels)], [compacted(0, labels), trace(1, labels)]
    assert decisions_of(plain, "recorded").facts() == decisions_of(plain).facts()
    facts = decisions_of(both, "recorded").facts()
    assert (facts["history"], facts["recorded_traces"], facts["traces"]) == ("recorded", 1, 2)
    asked = decisions_of(both, "recorded")
    rows = [t for (trace_id, t), counts in zip(asked.keys, asked.counts[1], strict=True) if trace_id == "t1" and counts]
    assert rows == [3, 4, 5]


def test_the_controls_see_the_history_that_the_decisions_are_about() -> None:
    traces = {"t0": compacted(0, [Label(2, "compression")])}
    counter = MessageTokens(EstimatedCounter())
    rows = {history: decisions_of(traces.values(), history) for history in HISTORIES}
    lengths = {history: observe(traces, found, counter).length.tolist() for history, found in rows.items()}
    assert lengths["full"][0] == lengths["recorded"][0]
    assert lengths["recorded"][1] == counter.total([Message("user", "task"), Message("user", "so far")])
    assert lengths["full"][1] == counter.total(traces["t0"].messages[:3])
    texts = {history: recent2_texts(traces, found)[2] for history, found in rows.items()}
    assert ("so far" in texts["recorded"], "step 1" in texts["recorded"]) == (True, False)
    assert ("so far" in texts["full"], "step 1" in texts["full"]) == (False, True)


def corpus(questions: int = 20, points: int = 24) -> Decisions:
    rng = np.random.default_rng(1)
    keys = tuple((f"t{question}", t) for question in range(questions) for t in range(1, points + 1))
    names = tuple(f"q{trace}" for trace, _ in keys)
    counts = np.array([[True] * len(keys), [t >= 3 for _, t in keys]])
    return Decisions(keys, names, (rng.random((2, len(keys))) < 0.25) & counts, counts, "hash")


def test_every_question_keeps_its_share_and_positives_keep_theirs() -> None:
    whole = corpus()
    found = sample(whole, 160)
    assert len(found) == 160
    assert set(Counter(found.questions).values()) == {8}
    assert list(found.keys) == [key for key in whole.keys if key in set(found.keys)]
    for target in range(2):
        rates = [part.labels[target][part.counts[target]].mean() for part in (whole, found)]
        assert rates[1] == pytest.approx(rates[0], abs=0.04)
    place = {key: row for row, key in enumerate(whole.keys)}
    rows = [place[key] for key in found.keys]
    assert np.array_equal(found.labels, whole.labels[:, rows])
    assert np.array_equal(found.counts, whole.counts[:, rows])


def test_the_seed_decides_and_a_large_sample_is_everything() -> None:
    whole = corpus()
    assert sample(whole, 100, 1).keys == sample(whole, 100, 1).keys
    assert sample(whole, 100, 1).keys != sample(whole, 100, 2).keys
    assert sample(whole, 0) is whole
    assert sample(whole, 10_000) is whole
    with pytest.raises(InputError, match=r"0 for all decision points, not -1\b"):
        sample(whole, -1)


def test_no_point_is_taken_twice_where_questions_have_a_single_point() -> None:
    keys = (("single", 1), *((f"t{number}", t) for number in range(3) for t in range(1, 11)))
    labels = np.zeros((2, len(keys)), dtype=bool)
    whole = Decisions(keys, tuple(trace for trace, _ in keys), labels, ~labels, "hash")
    for count in range(4, len(keys)):
        found = sample(whole, count)
        assert len(set(found.keys)) == len(found.keys) == count


def test_hindsight_labels_never_mix_with_others_unasked() -> None:
    mixed = [trace(0, [Label(2, "compression", origin="generator"), Label(3, "compression", value=False, origin="hindsight")])]
    with pytest.raises(InputError, match="--labels"):
        decisions_of(mixed)
    found = decisions_of(with_origin(mixed, "hindsight"))
    assert [t for _, t in found.keys] == [3]  # a rule says what it found where it can judge; other points are not negative
    with pytest.raises(InputError, match="generator, hindsight"):
        with_origin(mixed, "judge")
    two_rules = [trace(0, [Label(2, "compression", origin="hindsight"), Label(3, "compression", origin="hindsight:horizon=8")])]
    with pytest.raises(InputError):
        decisions_of(two_rules)


def test_a_split_by_source_keeps_a_repository_in_one_part() -> None:
    both = [Label(2, "compression"), Label(4, "recall")]
    traces = [trace(2 * number, both) for number in range(20)]
    sources = {one.trace_id: f"repository {number % 10}" for number, one in enumerate(traces)}
    found = decisions_of(traces, sources=sources, by_source=True)
    splits, checks = make_splits(found, [0, 1])
    assert found.facts()["sources"] == sorted(set(sources.values()))
    for split, check in zip(splits, checks, strict=True):
        parts = {
            source: {int(part) for part, own in zip(split.part, found.groups, strict=True) if own == source} for source in found.groups
        }
        assert all(len(own) == 1 for own in parts.values()) and sum(check.questions.values()) == 10 and not check.shared
    few = {one.trace_id: f"repository {number % 3}" for number, one in enumerate(traces)}
    with pytest.raises(InputError, match="sources"):
        make_splits(decisions_of(traces, sources=few, by_source=True), [0])


def test_equal_questions_of_two_sources_are_two_questions() -> None:
    twins = [msgspec.structs.replace(trace(number, [Label(2, "compression")]), question_id="3") for number in range(2)]
    assert decisions_of(twins).facts()["questions"] == 1
    assert decisions_of(twins, sources={"t0": "a", "t1": "b"}).facts()["questions"] == 2
