"""The seam between blocks and their summary: the `Summariser` Protocol and its values.

What always holds for every implementation: one detail line per block, in the blocks' order; the text stays within
the token limit the implementation was made with; a summary that cannot be made is an error, never an empty text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
    """One line per block, in the blocks' order."""
    input_tokens: int = 0
    """Tokens a model read to write this; 0 where no model was asked."""
    output_tokens: int = 0


class Summariser(Protocol):
    """Writes summaries."""

    name: str
    """Stored with every memory it wrote."""

    def summarise(self, task: str, blocks: Sequence[SourceBlock]) -> Summary:
        """The summary of these blocks, in view of the session's task."""
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
