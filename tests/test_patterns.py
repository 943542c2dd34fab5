"""Text from strangers goes through the package's patterns: none may take time that grows faster than the text."""

import re
import time
from typing import Any

import pytest

from pamer_lab.memory.terms import terms
from pamer_lab.redaction import Scan
from pamer_lab.runs.identifiers import identifiers
from tests.patterns import hostile_texts, package_patterns

SMALL, TIMES = 400, 16
MOST_GROWTH = 4 * TIMES
"""Sixteen times the text takes about 16 times the work, and 256 times if it grows like the square."""
LEAST_SECONDS = 1e-4
"""Below this a clock says little, and it does not matter."""


def _work(pattern: re.Pattern[Any], text: Any) -> float:
    """Processor time, so that a busy machine does not count."""
    began = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - began


def _growth(pattern: re.Pattern[Any], small: Any, large: Any) -> float:
    """The least of three tries, where the first is not fine already."""
    growth = 0.0
    for _ in range(3):
        growth = _work(pattern, large) / max(_work(pattern, small), LEAST_SECONDS)
        if growth <= MOST_GROWTH:
            break
    return growth


def _slow(pattern: re.Pattern[Any]) -> dict[str, float]:
    """Piece -> growth, of the first text that makes a pattern slow."""
    small, large = hostile_texts(pattern, SMALL), hostile_texts(pattern, SMALL * TIMES)
    for piece in small:
        if (growth := _growth(pattern, small[piece], large[piece])) > MOST_GROWTH:
            return {piece: growth}
    return {}


def test_every_pattern_of_the_package_takes_time_that_grows_like_the_text() -> None:
    patterns = package_patterns()
    assert {"pamer_lab.memory.terms.IDENTIFIER", "pamer_lab.detection.context.NAMED"} <= patterns.keys(), "none is left out"
    slow = {name: found for name, pattern in patterns.items() if (found := _slow(pattern))}
    assert not slow


@pytest.mark.parametrize("pattern", [r"[a-z]+@[a-z]+\.", r"(?:[\w.-]*/)+\w", r"^(a|aa)+b", r"x[\s\S]*?y"])
def test_the_search_for_slow_patterns_finds_one(pattern: str) -> None:
    texts = hostile_texts(re.compile(pattern), 200)
    assert texts
    if pattern != r"^(a|aa)+b":  # exponential: never run, only shown to be given a fitting text
        assert _slow(re.compile(pattern))


@pytest.mark.parametrize(
    "piece", ["a@", "/", "a/", "a.b@", "The ", "A ", "1,", "a:", "-", "____", "a_", "\\n", "\x1b[32m", "token=", "http://"]
)
def test_what_reads_terms_identifiers_and_secrets_grows_like_the_text(piece: str) -> None:
    """The complete functions, with what they do around their patterns."""
    for read in (terms.__wrapped__, identifiers, lambda text: Scan("all").clean(text, "x")):

        def work(length: int, read: Any = read) -> float:
            text = piece * (length // len(piece))
            began = time.process_time()
            read(text)
            return time.process_time() - began

        tries = (work(16_000) / max(work(2_000), 2e-4) for _ in range(3))
        assert any(growth < 4 * 8 for growth in tries)
