"""What `bench patterns` finds, with work that is counted instead of timed."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from pamer_lab.bench.hostile_texts import hostile_texts, package_patterns
from pamer_lab.bench.patterns import MOST, PIECES, READERS, growth, pattern_growth, reader_growth, too_slow


def linear(read: Callable[[Any], Any], text: Any) -> float:
    read(text)
    return float(len(text))


def quadratic(read: Callable[[Any], Any], text: Any) -> float:
    return float(len(text)) ** 2


def test_every_pattern_of_the_package_is_looked_at_and_gets_texts_of_its_own() -> None:
    patterns = package_patterns()
    kept = {"pamer_lab.memory.terms.IDENTIFIER", "pamer_lab.detection.context.NAMED"}
    assert kept <= patterns.keys() and len(patterns) > 200
    assert all(hostile_texts(pattern, 50) for pattern in patterns.values())


@pytest.mark.parametrize(
    ("pattern", "piece"), [(r"[a-z]+@[a-z]+\.", "a"), (r"(?:[\w.-]*/)+\w", "a/"), (r"^(a|aa)+b", "a"), (r"x[\s\S]*?y", "x")]
)
def test_a_slow_pattern_is_given_the_text_that_makes_it_slow(pattern: str, piece: str) -> None:
    assert piece in hostile_texts(re.compile(pattern), 200)


def test_work_that_grows_with_the_square_is_reported_and_linear_work_is_not() -> None:
    patterns = {"one": re.compile("a+b"), "two": re.compile("x")}
    assert too_slow(patterns, linear) == {}
    found = too_slow(patterns, quadratic)
    assert found.keys() == patterns.keys() and all(times > MOST and piece for times, piece in found.values())
    assert growth(str, "a" * 10, "a" * 160, quadratic) == 16 and growth(str, "a" * 10, "a" * 160, linear) == 1


def test_a_disturbed_measurement_is_tried_again() -> None:
    seen: list[int] = []

    def disturbed_once(read: Callable[[Any], Any], text: Any) -> float:
        seen.append(len(text))
        return 1e9 if len(seen) == 1 else float(len(text))

    assert growth(str, "a" * 10, "a" * 160, disturbed_once) == 1 and seen == [160, 10, 160, 10]


@pytest.mark.parametrize("name", READERS)
def test_readers_of_strange_text_take_every_piece(name: str) -> None:
    worst, piece = reader_growth(READERS[name], linear)
    assert worst == pytest.approx(1, abs=0.01) and piece in PIECES


def test_the_growth_of_a_pattern_names_the_piece() -> None:
    _, piece = pattern_growth(re.compile("ab*"), quadratic)
    assert piece in hostile_texts(re.compile("ab*"), 50)
