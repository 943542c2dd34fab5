"""The terms of a block: what it asked for, what came back, and what its results lead on from.

Pure. Which words lead on to something new is a short English list; on other languages nothing counts as leading on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pamer_lab.memory.terms import terms
from pamer_lab.trajectory.values import Message

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_ONWARD = re.compile(
    r"\b(next|new|not yet|not \w+ yet|ahead|unread|unseen|onward|(?:moves?|points?|hands?(?: \w+){0,2}) on|hands? over|fresh|anew|"
    r"starts? (?:over|with)|begins?|(?:turn|go|continu)e?s? (?:to|on|with))\b",
    re.IGNORECASE,
)
"""Words of a sentence that leads on to something not looked at so far."""


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
