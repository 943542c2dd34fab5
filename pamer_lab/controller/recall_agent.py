"""The seam between chosen steps and the evidence that enters the request: the `RecallAgent` Protocol and its packet.

What always holds: an agent gets the chosen blocks and nothing else of the history; a packet that cites a step outside them is
refused; declining is an answer, not a failure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pamer_lab.controller.decision import Auxiliary
from pamer_lab.controller.selection import Evidence, SelectionRefusedError


@dataclass(frozen=True)
class Citation:
    """Evidence from one step."""

    step: int
    text: str


@dataclass(frozen=True)
class Packet:
    """What a recall agent answers."""

    citations: tuple[Citation, ...]
    """Empty: the agent declined, nothing in the blocks helps."""
    auxiliary: tuple[Auxiliary, ...] = ()

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(sorted({citation.step for citation in self.citations}))


class RecallAgent(Protocol):
    """Turns chosen raw blocks into evidence."""

    name: str
    """Names everything that shapes a packet besides the blocks, so that a cache never mixes two agents."""

    def recall(self, task: str, goal: str, blocks: Sequence[Evidence]) -> Packet: ...


def checked(packet: Packet, blocks: Sequence[Evidence]) -> Packet:
    """The packet, if it cites only the chosen steps and says something about each it cites."""
    if not isinstance(packet, Packet):
        raise SelectionRefusedError("invalid packet: the recall agent answered something else")
    allowed = {block.covered.step for block in blocks}
    for citation in packet.citations:
        if citation.step not in allowed:
            raise SelectionRefusedError(f"invalid packet: it cites step {citation.step}, which was not chosen")
        if not citation.text.strip():
            raise SelectionRefusedError(f"invalid packet: it cites step {citation.step} without a text")
    return packet
