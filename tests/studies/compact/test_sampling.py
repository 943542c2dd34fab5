"""Samples of decision points: seeded, by question, with positives and negatives in their shares."""

from collections import Counter

import numpy as np
import pytest

from pamer_lab.errors import InputError
from pamer_lab.studies.compact.sampling import sample
from pamer_lab.studies.decisions import Decisions


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
    with pytest.raises(InputError, match=r"-1\b"):
        sample(whole, -1)


def test_no_point_is_taken_twice_where_questions_have_a_single_point() -> None:
    keys = (("single", 1), *((f"t{number}", t) for number in range(3) for t in range(1, 11)))
    labels = np.zeros((2, len(keys)), dtype=bool)
    whole = Decisions(keys, tuple(trace for trace, _ in keys), labels, ~labels, "hash")
    for count in range(4, len(keys)):
        found = sample(whole, count)
        assert len(set(found.keys)) == len(found.keys) == count
