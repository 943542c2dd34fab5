"""The seam between chosen steps and the evidence that enters the request: the `RecallAgent` Protocol and its packet.

Invariant: an agent gets the chosen blocks and nothing else of the history; a packet is refused if it cites a step outside them, or
a text that does not stand in that step's archived block; declining is an answer, not a failure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.controller.selection import Evidence, SelectionRefusedError
from pamer_lab.decisions import Spent
from pamer_lab.memory.summary import block_text, kept_pieces


@dataclass(frozen=True)
class Citation:
    """Evidence from one step."""

    step: int
    text: str
    """Words of the step's block: the complete block, one passage, or passages with `source.clip`'s mark between them."""


@dataclass(frozen=True)
class Packet:
    """What a recall agent answers."""

    citations: tuple[Citation, ...]
    """Empty: the agent declined, nothing in the blocks helps."""
    spent: tuple[Spent, ...] = ()
    in_part: tuple[int, ...] = ()
    """Cited steps of which some text is missing; set by `checked`."""

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(sorted({citation.step for citation in self.citations}))


class RecallAgent(Protocol):
    """Turns chosen raw blocks into evidence."""

    name: str
    """Names everything that shapes a packet besides the blocks, so that a cache never mixes two agents."""

    def recall(self, task: str, goal: str, blocks: Sequence[Evidence]) -> Packet: ...


def checked(packet: Packet, blocks: Sequence[Evidence]) -> Packet:
    """The packet, if it cites only text of the chosen steps; it then names the steps cited in part."""
    if not isinstance(packet, Packet):
        raise SelectionRefusedError("invalid packet: the recall agent answered something else")
    archived = {block.covered.step: block_text(block.messages).strip() for block in blocks}
    complete: set[int] = set()
    for citation in packet.citations:
        if citation.step not in archived:
            raise SelectionRefusedError(f"invalid packet: it cites step {citation.step}, which was not chosen")
        if not citation.text.strip():
            raise SelectionRefusedError(f"invalid packet: it cites step {citation.step} without a text")
        text, source = citation.text.strip(), archived[citation.step]
        shown = break_template_tokens(source)  # as a model gets it: with chat template marks broken
        if text in (source, shown):
            complete.add(citation.step)
        elif not verbatim(text, source) and not verbatim(text, shown):
            raise SelectionRefusedError(f"invalid packet: its text for step {citation.step} is not in the archived block")
    return replace(packet, in_part=tuple(step for step in packet.steps if step not in complete))


def verbatim(text: str, source: str) -> bool:
    """Does the text occur verbatim in the source; of a clipped text, every kept piece, in order?"""
    if text in source:
        return True
    place = 0
    for piece in kept_pieces(text):
        found = source.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return place > 0
