"""Texts that look random and match no known key: reported as possible keys only.

Hashes, UUIDs, known identifiers of calls and messages, paths and words are left out; what remains mixes cases and digits without a pattern.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

CANDIDATE = re.compile(r"(?<![A-Za-z0-9_\-+/=.%#])[A-Za-z0-9_\-+/]{24,128}+={0,2}(?![A-Za-z0-9_\-+/=.%])")
LEAST_BITS = 3.9
"""Bits per character: random letters and digits of 24 characters have about 4.2, words 3.5."""
LEAST_CHANGES = 0.3
"""Share of adjacent characters of different classes (lower, upper, digit, sign): about 0.6 in random text, 0.15 in identifiers."""
_IDENTIFIERS = re.compile(
    r"(?:toolu|call|chatcmpl|msg|resp|rs|fc|req|gen|asst|thread|run|file|item|ws|ctc|srvtoolu|tooluse|batch|session|sess|step|evt|event|trace|span"
    r"|sha(?:1|256|384|512)|md5|h1|bundle|data|prt|ses|usr|user|org|proj|acct|functions|agent|app|lc|chat|tool|id|bafy|Qm)[_\-:.]?.*"
)
_WORD = re.compile(r"[a-z]{6}|[A-Z]{6}|[0-9]{8}")


def possible_spans(text: str) -> Iterator[tuple[int, int]]:
    """Places of what may be a key."""
    for match in CANDIDATE.finditer(text):
        if _looks_random(match[0]):
            yield match.span()


def _looks_random(value: str) -> bool:
    classes = [_class(char) for char in value.rstrip("=")]
    if len(set(classes) & {"a", "A", "0"}) < 3 or classes.count("0") < 3 or classes.count("-") > len(value) / 10:
        return False
    if _IDENTIFIERS.fullmatch(value) or _WORD.search(value):
        return False
    changes = sum(one != other for one, other in pairwise(classes)) / (len(classes) - 1)
    return changes >= LEAST_CHANGES and _bits(value) >= LEAST_BITS


def _class(char: str) -> str:
    return "0" if char.isdigit() else "a" if char.islower() else "A" if char.isupper() else "-"


def _bits(value: str) -> float:
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())
