"""Numbers as people read them."""

import pytest

from pamer_lab.figures.numbers import counted, round_ticks, share, short


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1_000, "1.0K"), (12_400, "12.4K"), (999_949, "999.9K"), (999_950, "1.0M"), (-61_200, "-61.2K")],
)
def test_thousands_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_shares_have_one_decimal_and_a_share_of_nothing_is_none() -> None:
    assert share(26, 100) == "26.0 %"
    assert share(1, 0) == "none"


def test_one_thing_is_not_many() -> None:
    assert counted(1, "trace") == "1 trace"
    assert counted(2_000, "trace") == "2,000 traces"


@pytest.mark.parametrize("largest", [1, 3, 7, 12, 95, 100, 999, 2_345, 69_003, 1_000_000])
def test_ticks_are_few_round_and_within_the_data(largest: int) -> None:
    ticks = round_ticks(largest)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == 0 and ticks[-1] <= largest
    assert all(tick == int(tick) for tick in ticks)
