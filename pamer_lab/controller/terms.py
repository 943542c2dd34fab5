"""The names and identifiers that two texts can share: what links a request to an earlier step without a model.

Pure. Names are runs of capitalised words; a single capitalised word counts only inside a sentence, because every sentence starts
with one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pamer_lab.memory.salience import identifiers
from pamer_lab.trajectory.values import Message

_KEBAB = re.compile(r"\b[a-z0-9]+(?:-[a-z0-9]+)+\b")
_NAME = re.compile(r"[A-Z][\w'’-]*(?:[ \t]+(?:(?:of|de|van|von|the)[ \t]+)?[A-Z][\w'’-]*)*")
_INITIAL = re.compile(r"(?:^|[.!?:;\]\n]\s*|\d\.\s+|[\"'(])$")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_ONWARD = re.compile(
    r"\b(next|new|not yet|not \w+ yet|ahead|unread|unseen|onward|(?:moves?|points?|hands?(?: \w+){0,2}) on|hands? over|fresh|anew|"
    r"starts? (?:over|with)|begins?|(?:turn|go|continu)e?s? (?:to|on|with))\b",
    re.IGNORECASE,
)
"""Words of a sentence that leads on to something not looked at so far."""
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


@dataclass(frozen=True)
class BlockTerms:
    """What one block asked, and what it got."""

    asked: frozenset[str]
    """Terms of the assistant's text and calls."""
    called: frozenset[str]
    """Those of its calls alone: what the step was aimed at."""
    aimed: frozenset[str]
    """Those of its calls and of the last sentence before them: what the agent is after now."""
    answered: frozenset[str]
    """Terms of results and of whatever else came after."""

    @property
    def all(self) -> frozenset[str]:
        return self.asked | self.answered


def block_terms(messages: Sequence[Message]) -> BlockTerms:
    """The terms of one block, its assistant message apart from what followed."""
    called: set[str] = set().union(*(terms(call.arguments) for message in messages[:1] for call in message.tool_calls))
    said: set[str] = set().union(*(terms(message.content) for message in messages[:1]))
    answered: set[str] = set().union(*(terms(message.content) for message in messages[1:]))
    closing: set[str] = set().union(*(terms(_SENTENCE.split(message.content.strip())[-1]) for message in messages[:1]))
    return BlockTerms(frozenset(said | called), frozenset(called), frozenset(called | closing), frozenset(answered))


def superseded(messages: Sequence[Message], looked_at: set[str]) -> set[str]:
    """Terms that a block's results bring up before a later sentence leads on to something the agent has not looked at."""
    sentences = [part for message in messages[1:] for part in _SENTENCE.split(message.content)]
    found = [terms(sentence) for sentence in sentences]
    leads = [number for number, sentence in enumerate(sentences) if _ONWARD.search(sentence) and found[number] - looked_at]
    last = max(leads, default=-1)
    after = set().union(*found[last:]) if leads else set()
    return set().union(*found[:last]) - after if leads else set()
