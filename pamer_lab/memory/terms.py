"""Names and identifiers of a text, and how informative a line of a transcript is: TF-IDF centrality, weighted by its content.

Pure and deterministic. Lines that carry identifiers, numbers, names, decisions or errors are what a later step comes back for, so each
of these raises a line's weight. Names are runs of capitalised words; a single capitalised word counts only inside a sentence, because
every sentence starts with one. In scripts without capitals only identifiers and numbers are found.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

IDENTIFIER = re.compile(
    r"""https?://[^\s)\]>"']+            # addresses
      | (?<![\w.-])[\w.-]+@[\w-]+\.[\w.-]+  # mail
      | (?<![\w./-])(?:[\w.-]*/)+[\w.-]*\w  # paths
      | \b\w+(?:_\w+)+\b                 # snake_case
      | \b[a-z]+(?:[A-Z][a-z0-9]+)+\b    # camelCase
      | \b(?:[A-Z][a-z0-9]+){2,}\b       # CamelCase
      | \b[A-Za-z]+[-_]?\d[\w-]*\b       # run-42, v3, ORD7781
      | \b[0-9a-f]{7,40}\b               # hashes
      | \b\w+\.[a-z]{1,5}\b              # files
    """,
    re.VERBOSE,
)
NUMBER = re.compile(r"(?<![\w.])[-+$€£]?\d[\d,.:%/-]*\d|\b\d\b")
NAME = re.compile(r"(?<=[a-z,;:(] )[A-Z][a-z]+(?: [A-Z][a-z]+)*|\b[A-Z]{2,}\b")
DECISION = re.compile(
    r"\b(decid\w+|decision|will use|chose|chosen|choose|instead|because|therefore|conclu\w+|confirm\w+|plan\w*|must|should|"
    r"answer\w*|found|result\w*|selected|agreed|solution|fixed|final\w*|key|important|note|remember|requires?)\b",
    re.IGNORECASE,
)
ERROR = re.compile(
    r"\b(error|errors|exception|traceback|fail\w*|denied|refused|not found|missing|invalid|timeout|timed out|cannot|unable|"
    r"warning|exit code|undefined|rejected|forbidden)\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W\d_]{2,}|\d+")

IDENTIFIER_WEIGHT, NUMBER_WEIGHT, NAME_WEIGHT, DECISION_WEIGHT, ERROR_WEIGHT = 0.5, 0.35, 0.2, 0.5, 0.6
BASE = 0.6
"""What a line counts without any centrality: what it carries matters more than how much it is like the others."""
MOST_COUNTED = 3
"""Occurrences of one kind that count in one line; a table of numbers does not drown everything else."""


def identifiers(text: str) -> set[str]:
    """Identifiers of a text in lower case, as two texts can share them; numbers of two digits and more included."""
    found = {match.group().strip(".,:;").lower() for match in IDENTIFIER.finditer(text)}
    found |= {match.group().strip(".,:;+-") for match in NUMBER.finditer(text) if sum(char.isdigit() for char in match.group()) > 1}
    return {name for name in found if len(name) > 1}


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def weight(line: str) -> float:
    """What the line carries, at least 1."""
    total = 1.0
    for pattern, value in (
        (IDENTIFIER, IDENTIFIER_WEIGHT),
        (NUMBER, NUMBER_WEIGHT),
        (NAME, NAME_WEIGHT),
        (DECISION, DECISION_WEIGHT),
        (ERROR, ERROR_WEIGHT),
    ):
        total += value * min(sum(1 for _ in pattern.finditer(line)), MOST_COUNTED)
    return total


def scores(lines: Sequence[str]) -> list[float]:
    """One score per line: cosine to the centroid of all lines' TF-IDF vectors, times the line's weight."""
    counted = [Counter(words(line)) for line in lines]
    present: Counter[str] = Counter(word for counts in counted for word in counts)
    idf = {word: math.log((1 + len(lines)) / (1 + number)) + 1 for word, number in present.items()}
    vectors = [_unit({word: (1 + math.log(count)) * idf[word] for word, count in counts.items()}) for counts in counted]
    centre: Counter[str] = Counter()
    # A line that is repeated says nothing more by it.
    for vector in dict(zip(lines, vectors, strict=True)).values():
        for word, value in vector.items():
            centre[word] += value  # type: ignore[assignment]
    middle = _unit(dict(centre))
    return [
        (BASE + (1 - BASE) * sum(value * middle[word] for word, value in vector.items())) * weight(line)
        for vector, line in zip(vectors, lines, strict=True)
    ]


def _unit(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(value * value for value in vector.values()))
    return {word: value / length for word, value in vector.items()} if length else {}


_KEBAB = re.compile(r"\b[a-z0-9]+(?:-[a-z0-9]+)+\b")
_NAME = re.compile(r"[A-Z][\w'’-]*(?:[ \t]+(?:(?:of|de|van|von|the)[ \t]+)?[A-Z][\w'’-]*)*")
_INITIAL = re.compile(r"(?:^|[.!?:;\]\n]\s*|\d\.\s+|[\"'(])$")
_ARTICLES = re.compile(r"^(?:(?:the|a|an|at|in|on|of|for|from|by|it|its|this|that|these|those|and|or|but|as|to|is|was)\s+)+")

KEPT = 16_384
"""Texts whose terms are remembered."""


@lru_cache(maxsize=KEPT)
def terms(text: str) -> frozenset[str]:
    """Names and identifiers of a text, in lower case; the recent blocks are asked for again at every turn, so answers are kept."""
    found = identifiers(text) | set(_KEBAB.findall(text))
    for match in _NAME.finditer(text):
        words = match.group().lower().rstrip("'’-").removesuffix(" i").split()
        initial = bool(_INITIAL.search(text[max(match.start() - 4, 0) : match.start()]))
        if initial and len(words) > 2:
            found.add(" ".join(words[1:]))  # "Now Grafton Gallery": the first word may only open the sentence
        if not initial or len(words) > 1:
            found.add(_ARTICLES.sub("", " ".join(words)))
    return frozenset(name for name in found if len(name) > 2)
