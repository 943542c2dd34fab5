"""The seams between blocks and what stands for them in memory: the `Summariser` and `DetailWriter` Protocols and their values.

Invariant: one detail line per block, in the blocks' order; the text stays within the token limit the implementation was made
with; a summary that cannot be made is an error that carries what its calls took, never an empty text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pamer_lab.models.usage import NO_USAGE, ChatUsage
from pamer_lab.trajectory.values import Message


@dataclass(frozen=True)
class SourceBlock:
    """One block to be summarised."""

    step: int
    """Block number in the session's history."""
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class Summary:
    """What replaces the blocks."""

    text: str
    details: tuple[str, ...]
    """One line per block, in the blocks' order; written by a rule, so that they take no part of the text's budget."""
    usage: ChatUsage = NO_USAGE
    """What a model took to write the text; no calls where a rule wrote it."""


@dataclass(frozen=True)
class DetailLines:
    """What a memory's index says of its blocks."""

    lines: tuple[str, ...]
    """One per block, in the blocks' order."""
    usage: ChatUsage = NO_USAGE


class Summariser(Protocol):
    """Writes summaries."""

    name: str
    """Stored with every memory it wrote."""

    def summarise(self, task: str, blocks: Sequence[SourceBlock]) -> Summary:
        """The summary of these blocks, in view of the session's task."""
        ...


class DetailWriter(Protocol):
    """Writes step details in place of the rule's, for PaMER+, whose router reads them."""

    name: str
    """Stored with every memory it wrote for."""

    def describe(self, task: str, blocks: Sequence[SourceBlock]) -> DetailLines:
        """One line per block, in view of the session's task."""
        ...


def faults(summary: Summary, blocks: Sequence[SourceBlock]) -> list[str]:
    """What is wrong with a summary's shape, in words."""
    found: list[str] = []
    if not summary.text.strip():
        found.append("the summary is empty")
    if len(summary.details) != len(blocks):
        found.append(f"it has {len(summary.details)} step details for {len(blocks)} steps")
    if any(not detail.strip() or "\n" in detail for detail in summary.details):
        found.append("a step detail is empty or has more than one line")
    return found
