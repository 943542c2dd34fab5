"""Splits keep questions together, are the same everywhere, and say what is missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.errors import InputError
from pamer_lab.probes.split import CLEAN, TEST, TRAIN, VALIDATION, Split, check_leak, require_both_classes, split_by_question


@given(st.lists(st.integers(0, 60), min_size=7, max_size=200).filter(lambda ids: len(set(ids)) >= 7), st.integers(0, 4))
def test_no_question_is_in_two_parts_and_every_part_has_one(ids: list[int], seed: int) -> None:
    questions = [f"q{number}" for number in ids]
    split = split_by_question(questions, seed)
    check = check_leak(split, questions)
    assert check.shared == ()
    assert min(check.questions.values()) >= 1
    assert sum(check.questions.values()) == len(set(questions))


def test_the_shares_are_70_15_15_by_question() -> None:
    questions = [f"q{number}" for number in range(600)]
    assert check_leak(split_by_question(questions, 0), questions).questions == {"training": 420, "validation": 90, "test": 90}
    of_48 = [f"q{number}" for number in range(48)]
    assert check_leak(split_by_question(of_48, 0), of_48).questions == {"training": 34, "validation": 7, "test": 7}


def test_a_split_depends_on_the_seed_and_not_on_the_order_of_rows() -> None:
    questions = [f"q{number}" for number in range(40)]
    first = split_by_question(questions, 3)
    turned = split_by_question(questions[::-1], 3)
    assert np.array_equal(first.part, turned.part[::-1])
    assert not np.array_equal(first.part, split_by_question(questions, 4).part)
    # Written down, so that a change of the rule is seen: results of another split are not comparable.
    assert "".join(str(part) for part in first.part) == EXPECTED_SEED_3


EXPECTED_SEED_3 = "0101100102000000000000201002000020100220"


def test_too_few_questions_are_refused_with_a_sentence() -> None:
    with pytest.raises(InputError, match=r"\b7\b.*\b3\b"):
        split_by_question(["a", "b", "c"] * 50, 0)


def test_a_part_without_a_class_is_refused_with_a_sentence() -> None:
    split = Split(2, np.array([TRAIN, TRAIN, VALIDATION, VALIDATION, TEST, TEST], dtype=np.int8))
    labels = np.array([True, False, True, False, False, False])
    with pytest.raises(InputError, match=r"test.*seed 2\b.*positive.*recall.*\b2\b"):
        require_both_classes(split, labels, np.ones(6, dtype=bool), "recall")
    counts = np.array([True, True, True, False, True, True])
    with pytest.raises(InputError, match=r"validation.*seed 2\b.*negative"):
        require_both_classes(split, labels | (np.arange(6) == 4), counts, "recall")


def test_the_leak_check_sees_a_leak() -> None:
    leaky = Split(0, np.array([TRAIN, TEST, VALIDATION], dtype=np.int8))
    check = check_leak(leaky, ["a", "a", "b"])
    assert check.shared == ("a",)
    assert not check.sentence.endswith(CLEAN)
