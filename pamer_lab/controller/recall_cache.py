"""A cache of evidence packets.

A packet's key is its selector: the sorted summary and step ids. The router's wording of the goal and later history do not matter; changed
material does, and is detected by a hash over the chosen blocks and the agent's name. A declined recall is cached like any other; a
rejected packet never is.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

from pamer_lab.bounded import Bounded
from pamer_lab.controller.recall_agent import Packet
from pamer_lab.controller.selection import Selection

CacheOutcome = Literal["empty_selection", "invalid_packet", "selector_changed", "material_changed", "hit", "miss"]
"""`empty_selection`: nothing was chosen, nothing looked up. `invalid_packet`: the agent's packet was refused, nothing is kept.
`selector_changed`: the session's last selection was another one. `material_changed`: the same selection, but its blocks or the
agent changed. `hit`: the kept packet is used. `miss`: the session had no selection before."""

Selector = tuple[tuple[str, ...], tuple[int, ...]]
KEPT = 1_024
"""Packets kept; the oldest goes first."""


@dataclass(frozen=True)
class _Kept:
    material: str
    packet: Packet


class RecallCache:
    """Packets by session and selector."""

    def __init__(self) -> None:
        self._kept: Bounded[tuple[str, Selector], _Kept] = Bounded(KEPT)
        self._last: Bounded[str, Selector] = Bounded(KEPT)

    def look(self, session_id: str, selection: Selection, agent: str) -> tuple[CacheOutcome, Packet | None]:
        """What the cache knows of this selection, and the packet on a hit."""
        if not selection.blocks:
            return "empty_selection", None
        selector = selector_of(selection)
        kept = self._kept.get((session_id, selector))
        if kept is not None:
            return ("hit", kept.packet) if kept.material == material(selection, agent) else ("material_changed", None)
        return ("selector_changed" if session_id in self._last else "miss"), None

    def keep(self, session_id: str, selection: Selection, agent: str, packet: Packet) -> None:
        """Remember a packet that was found valid; declined ones too."""
        selector = selector_of(selection)
        self._kept[session_id, selector] = _Kept(material(selection, agent), packet)
        self._last[session_id] = selector


def selector_of(selection: Selection) -> Selector:
    return tuple(sorted(selection.memory_ids)), tuple(sorted(selection.steps))


def material(selection: Selection, agent: str) -> str:
    """Hash of what a packet is made from: the chosen raw blocks, and who makes it."""
    digest = hashlib.sha256(agent.encode())
    for block in sorted(selection.blocks, key=lambda block: block.step):
        digest.update(f"\n{block.step} {block.raw_hash}".encode())
    return digest.hexdigest()
