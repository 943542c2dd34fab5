"""Names and identifiers of a text: what two texts can share without a model.

Pure. Names are runs of capitalised words; a single capitalised word counts only inside a sentence, because every sentence starts
with one. In scripts without capitals only identifiers and numbers are found.
"""

import re
from functools import lru_cache

from pamer_lab.memory.salience import identifiers

_KEBAB = re.compile(r"\b[a-z0-9]+(?:-[a-z0-9]+)+\b")
_NAME = re.compile(r"[A-Z][\w'’-]*(?:[ \t]+(?:(?:of|de|van|von|the)[ \t]+)?[A-Z][\w'’-]*)*")
_INITIAL = re.compile(r"(?:^|[.!?:;\]\n]\s*|\d\.\s+|[\"'(])$")
_ARTICLE = re.compile(r"^(?:the|a|an|at|in|on|of|for|from|by|it|its|this|that|these|those|and|or|but|as|to|is|was)\s+")

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
            name = " ".join(words)
            while (shorter := _ARTICLE.sub("", name)) != name:
                name = shorter
            found.add(name)
    return frozenset(name for name in found if len(name) > 2)
