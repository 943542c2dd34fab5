"""The `Probe` Protocol between a request and the compression heads, its votes, and probes without a model.

Invariant: a probe returns finite numbers, one per head, or raises; a vote is a probability at or above its head's own threshold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Protocol, runtime_checkable

from pamer_lab.errors import ProbeError
from pamer_lab.features.values import Cancel, OnProgress, Request
from pamer_lab.trajectory.values import Message, Tool


@dataclass(frozen=True)
class Votes:
    """The heads' votes."""

    logits: tuple[float, ...]
    thresholds: tuple[float, ...]
    """Probabilities, one per head."""

    @cached_property
    def probabilities(self) -> tuple[float, ...]:
        return tuple(_sigmoid(logit) for logit in self.logits)

    @cached_property
    def votes(self) -> tuple[bool, ...]:
        return tuple(probability >= threshold for probability, threshold in zip(self.probabilities, self.thresholds, strict=True))

    def checked(self, heads: int) -> "Votes":
        """These votes, if there is one finite number per head."""
        if len(self.logits) != heads or len(self.thresholds) != heads:
            raise ProbeError(f"{heads} heads were expected; there are {len(self.logits)} logits and {len(self.thresholds)} thresholds")
        if not all(math.isfinite(value) for value in (*self.logits, *self.thresholds)):
            raise ProbeError("a logit or threshold is not finite")
        return self


class Probe(Protocol):
    """Reads the frozen model's state before the next action and lets the heads vote on compression."""

    name: str

    def vote(self, messages: Sequence[Message], tools: Sequence[Tool], active_tokens: int) -> Votes:
        """Votes for the request `messages` (prefix and recent blocks).

        `active_tokens`: size of the active request with its tools. The output reserve for the context hint is added only where the
        probe input is built (`features/inputs.py`).
        """
        ...


@runtime_checkable
class ReadingProbe(Protocol):
    """A probe that can compute many inputs of one recorded trace together."""

    def read_ahead(self, request: Request, progress: OnProgress | None = None, cancel: Cancel | None = None) -> None:
        """Compute what `vote` will need at these decision points, if their context alone determines it."""
        ...


class FixedProbe:
    """Always gives the same votes: for tests, benches, and policies that compress whenever there is enough to compress."""

    name = "fixed"

    def __init__(self, logits: Sequence[float] = (1.0,) * 5, thresholds: Sequence[float] = (0.5,) * 5) -> None:
        self._votes = Votes(tuple(logits), tuple(thresholds))

    def vote(self, messages: Sequence[Message], tools: Sequence[Tool], active_tokens: int) -> Votes:
        return self._votes


class TextProbe:
    """Votes without a model: five numbers that depend only on the last message, for replays in which the decisions do not matter."""

    name = "by-text"

    def vote(self, messages: Sequence[Message], tools: Sequence[Tool], active_tokens: int) -> Votes:
        digest = sha256(messages[-1].content.encode("utf-8", "replace")).digest()
        return Votes(tuple((byte - 110) / 40 for byte in digest[:5]), (0.4, 0.5, 0.5, 0.55, 0.6))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
