"""How the time of every regular expression, and of the readers of terms, identifiers and secrets, grows with a hostile text.

A ratio of 1 is linear growth; a pattern with quadratic backtracking gets about `TIMES`. Above `MOST` is a defect.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pamer_lab.bench.hostile_texts import hostile_texts, package_patterns
from pamer_lab.bench.measure import best_seconds
from pamer_lab.memory.terms import terms
from pamer_lab.redaction import Scan
from pamer_lab.runs.identifiers import identifiers

HELP = "growth of every pattern's time with hostile texts of 16 times the length, against linear growth"

SMALL, TIMES = 400, 16
MOST = 4.0
"""Growth relative to linear that other work on the machine can explain."""
LEAST_SECONDS = 1e-4
"""Shorter times count as this: the clock is too coarse for them, and they do not matter."""
TRIES = 3
READERS: dict[str, Callable[[str], Any]] = {
    "terms": terms.__wrapped__,
    "identifiers": identifiers,
    "secrets": lambda text: Scan("all").clean(text, "x"),
}
"""Complete functions, including their work around the patterns."""
PIECES = (
    "a",
    "a@",
    "/",
    "a/",
    "a.b@",
    "The ",
    "A ",
    "1,",
    "a:",
    "-",
    "____",
    "a_",
    "\\n",
    "\x1b[32m",
    "token=",
    "http://",
    "sk-",
    "-----BEGIN PRIVATE KEY-----",
    "x.y",
)

Work = Callable[[Callable[[Any], Any], Any], float]
"""(function, text) -> the time it took."""


def seconds(read: Callable[[Any], Any], text: Any) -> float:
    """Processor time of one call, so that a busy machine does not count."""
    return max(best_seconds(lambda: read(text), repeats=1, collect=False), LEAST_SECONDS)


def growth(read: Callable[[Any], Any], small: Any, large: Any, work: Work = seconds) -> float:
    """Growth of the work relative to that of the text: the smallest of up to three tries, stopping at the first acceptable one."""
    times = len(large) / len(small)
    least = float("inf")
    for _ in range(TRIES):
        least = min(least, work(read, large) / work(read, small) / times)
        if least <= MOST:
            break
    return least


def pattern_growth(pattern: re.Pattern[Any], work: Work = seconds) -> tuple[float, str]:
    """The worst growth of a pattern and the piece of text that causes it; stops at the first above `MOST`."""

    def read(text: Any) -> None:
        for _ in pattern.finditer(text):
            pass

    small, large = hostile_texts(pattern, SMALL), hostile_texts(pattern, SMALL * TIMES)
    worst = (0.0, "")
    for piece in small:
        worst = max(worst, (growth(read, small[piece], large[piece], work), piece))
        if worst[0] > MOST:
            break
    return worst


def reader_growth(read: Callable[[str], Any], work: Work = seconds) -> tuple[float, str]:
    """The worst growth of a function over repeated pieces."""
    texts = {piece: (piece * (2_000 // len(piece)), piece * (32_000 // len(piece))) for piece in PIECES}
    return max((growth(read, small, large, work), piece) for piece, (small, large) in texts.items())


def too_slow(patterns: Mapping[str, re.Pattern[Any]], work: Work = seconds) -> dict[str, tuple[float, str]]:
    """The patterns whose work grows faster than the text, with growth and piece."""
    return {name: worst for name, pattern in patterns.items() if (worst := pattern_growth(pattern, work))[0] > MOST}


def run() -> tuple[dict[str, float], dict[str, Any]]:
    patterns = {name: pattern_growth(pattern) for name, pattern in package_patterns().items()}
    readers = {name: reader_growth(read) for name, read in READERS.items()}
    name, (worst, piece) = max(patterns.items(), key=lambda item: item[1])
    ratios = {"pattern_growth_vs_linear": worst} | {f"{name}_growth_vs_linear": found[0] for name, found in readers.items()}
    slow = {name: found for name, found in patterns.items() if found[0] > MOST}
    return ratios, {"patterns": len(patterns), "limit": MOST, "worst": {"name": name, "piece": piece}, "too_slow": slow, "readers": readers}
