"""Names and identifiers of a text, and how informative a line of a transcript is: TF-IDF centrality, weighted by its content.

Pure and deterministic. Later steps come back for lines with identifiers, numbers, names, decisions or errors, so each
of these raises a line's weight. Names are runs of capitalised words; a single capitalised word counts only inside a sentence, because
every sentence starts with one. In scripts without capitals only identifiers and numbers are found.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from operator import mul

IDENTIFIER = re.compile(
    r"""https?://[^\s)\]>"']+            # addresses
      | (?<![\w.-])[\w.-]+@[\w-]+\.[\w.-]+  # mail
      | (?<![\w./-])(?:[\w.-]*/)+[\w.-]*\w  # paths
      | \b\w+(?:_\w+)+\b                 # snake_case
      | \b[a-z]+(?:[A-Z][a-z0-9]+)+\b    # camelCase
      | \b(?:[A-Z][a-z0-9]+){2,}\b       # CamelCase
      | \b[A-Za-z]+[-_]?\d[\w-]*\b       # run-42, v3, ORD7781
      | \b\d+[A-Za-z][0-9A-Za-z]{3,}\b    # 4OG6T3
      | \b[0-9a-f]{7,40}\b               # hashes
      | \b\w+\.[a-z]{1,5}\b              # files
    """,
    re.VERBOSE,
)
_HINT = re.compile(r"[/@_\d]|\.[a-z]|[a-z][A-Z]|[0-9a-f]{7}")
"""Every identifier has one of these; searching for them takes a fifth of the time, and prose has none."""
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
"""Part of a line's score that does not depend on centrality: its content matters more than its similarity to other lines."""
MOST_COUNTED = 3
"""Maximum occurrences of one kind that count in a line, so that a table of numbers does not drown out everything else."""


KEPT_LINES = 8192
"""Number of lines whose words, weight and tokens are cached: consecutive summaries read mostly the same lines."""


def identifiers(text: str) -> set[str]:
    """Identifiers of a text, in lower case so that texts can be compared; numbers of two or more digits are included."""
    found = {match.group().strip(".,:;").lower() for match in _identifier_matches(text)}
    found |= {match.group().strip(".,:;+-") for match in NUMBER.finditer(text) if sum(char.isdigit() for char in match.group()) > 1}
    return {name for name in found if len(name) > 1}


def _identifier_matches(text: str) -> Iterator[re.Match[str]]:
    return IDENTIFIER.finditer(text) if _HINT.search(text) else iter(())


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


@lru_cache(maxsize=KEPT_LINES)
def weight(line: str) -> float:
    """How much information the line carries, at least 1."""
    total = 1.0
    for matches, value in (
        (_identifier_matches(line), IDENTIFIER_WEIGHT),
        (NUMBER.finditer(line), NUMBER_WEIGHT),
        (NAME.finditer(line), NAME_WEIGHT),
        (DECISION.finditer(line), DECISION_WEIGHT),
        (ERROR.finditer(line), ERROR_WEIGHT),
    ):
        total += value * sum(1 for _ in islice(matches, MOST_COUNTED))
    return total


def scores(lines: Sequence[str]) -> list[float]:
    """One score per line: cosine to the centroid of all lines' TF-IDF vectors, times the line's weight."""
    frequencies = {line: _term_frequencies(line) for line in lines}  # repeating a line adds nothing
    present = Counter(chain.from_iterable(map(frequencies.__getitem__, lines)))
    idf = {word: math.log((1 + len(lines)) / (1 + number)) + 1 for word, number in present.items()}
    vectors = {line: _unit(list(map(mul, own.values(), map(idf.__getitem__, own)))) for line, own in frequencies.items()}
    centre = dict.fromkeys(present, 0.0)
    for line, vector in vectors.items():
        for word, value in zip(frequencies[line], vector, strict=True):
            centre[word] += value
    middle = dict(zip(centre, _unit(list(centre.values())), strict=True))
    rated = {
        line: (BASE + (1 - BASE) * sum(map(mul, vector, map(middle.__getitem__, frequencies[line])))) * weight(line)
        for line, vector in vectors.items()
    }
    return [rated[line] for line in lines]


@lru_cache(maxsize=KEPT_LINES)
def _term_frequencies(line: str) -> Mapping[str, float]:
    return {word: 1 + math.log(count) for word, count in Counter(words(line)).items()}


def forget_lines() -> None:
    """Clear the caches, as in a new process."""
    for kept in (weight, _term_frequencies, terms):
        kept.cache_clear()


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(map(mul, vector, vector)))
    return [value / length for value in vector] if length else vector


_KEBAB = re.compile(r"\b[a-z0-9]+(?:-[a-z0-9]+)+\b")
_NAME = re.compile(r"[A-Z][\w'’-]*(?:[ \t]+(?:(?:of|de|van|von|the)[ \t]+)?[A-Z][\w'’-]*)*")
_INITIAL = re.compile(r"(?:^|[.!?:;\]\n]\s*|\d\.\s+|[\"'(])$")
_ARTICLES = re.compile(r"^(?:(?:the|a|an|at|in|on|of|for|from|by|it|its|this|that|these|those|and|or|but|as|to|is|was)\s+)+")

KEPT = 16_384
"""Number of texts whose terms are cached."""


@lru_cache(maxsize=KEPT)
def terms(text: str) -> frozenset[str]:
    """Names and identifiers of a text, in lower case; cached, because the recent blocks are read again at every turn."""
    found = identifiers(text) | set(_KEBAB.findall(text))
    for match in _NAME.finditer(text):
        words = match.group().lower().rstrip("'’-").removesuffix(" i").split()
        initial = bool(_INITIAL.search(text[max(match.start() - 4, 0) : match.start()])) and not _quoted(text, match)
        if initial and len(words) > 2:
            found.add(" ".join(words[1:]))  # "Now Grafton Gallery": the first word may only open the sentence
        if not initial or len(words) > 1:
            found.add(_ARTICLES.sub("", " ".join(words)))
    return frozenset(name for name in found if len(name) > 2)


def _quoted(text: str, match: re.Match[str]) -> bool:
    """Whether the words fill a quotation, as values in JSON do."""
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return before == after and before in ('"', "`")
