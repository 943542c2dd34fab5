"""Triggers: what decides on compression in place of the heads, without a model.

Pure: a verdict depends only on the session's id, the turn and two sizes, so a session resumed after a crash decides the same.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, Protocol, runtime_checkable

from pamer_lab.controller.gate import Verdict

Measure = Literal["candidate", "context"]
"""`candidate`: tokens of the older blocks that could be compressed. `context`: those of the request with tools, without recalled memory."""


@dataclass(frozen=True)
class Moment:
    """What a trigger may know of a request that has enough to compress."""

    session_id: str
    turn: int
    """The decision point: number of blocks in the history."""
    candidate: int
    context: int


@runtime_checkable
class Trigger(Protocol):
    """Decides when to compress."""

    def ask(self, moment: Moment) -> Verdict: ...


@dataclass(frozen=True)
class RandomTrigger:
    """Compresses with a fixed probability, drawn from seed, session and turn."""

    rate: float
    seed: int

    def ask(self, moment: Moment) -> Verdict:
        digest = sha256(f"{self.seed}\n{moment.turn}\n{moment.session_id}".encode("utf-8", "surrogatepass")).digest()
        drawn = int.from_bytes(digest[:8]) / 2**64
        edit = drawn < self.rate
        return Verdict(edit, f"the draw of {drawn:.3f} is {'under' if edit else 'not under'} the rate of {self.rate:g}")


@dataclass(frozen=True)
class ThresholdTrigger:
    """Compresses once a number of tokens is reached."""

    tokens: int
    of: Measure

    def ask(self, moment: Moment) -> Verdict:
        size = moment.candidate if self.of == "candidate" else moment.context
        edit = size >= self.tokens
        return Verdict(edit, f"the {self.of} has {size:,} tokens, {'at least' if edit else 'under'} {self.tokens:,}")
