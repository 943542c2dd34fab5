"""Numbers in untrusted text."""

import pytest

from pamer_lab.counts import MOST_DIGITS, whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("12", 12), ("-3", -3), ("007", 7), ("9" * MOST_DIGITS, 10**MOST_DIGITS - 1)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", "-", "--1", "1.5", " 1", "²", "٣", "1²", "9" * (MOST_DIGITS + 1), "9" * 5_000])
def test_what_only_looks_like_a_number_or_is_too_long_is_none(text: str) -> None:
    assert whole_number(text) is None
