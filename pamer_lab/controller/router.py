"""The seam between a request and the steps it needs: the `Router` Protocol and what a router gets and gives.

A router sees task, recent blocks and the index of summaries with their step details, never the future action. One exception is
named as a deviation: `router=archive` also reads the raw archived blocks. A router's answer is untrusted: only
`selection.select` turns it into anything.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from pamer_lab.decisions import Spent
from pamer_lab.memory import SessionMemory
from pamer_lab.trajectory.values import Message

CANDIDATES_KEPT = 20
"""Candidates that a router reports; enough to see near misses."""


@dataclass(frozen=True)
class RouterQuery:
    """What a router may look at."""

    task: str
    recent: tuple[tuple[Message, ...], ...]
    """The recent blocks, oldest first."""
    memory: SessionMemory
    """The index: summaries with their step details."""


@dataclass(frozen=True)
class Candidate:
    """One step that a router considered."""

    memory_id: str
    step: int
    score: float
    rank: int
    """From 1, the best."""


@dataclass(frozen=True)
class Routing:
    """A router's answer, as it came, and what it considered."""

    answer: Any
    """Should be `{summary_ids, raw_steps_needed, goal}`; may be anything."""
    candidates: tuple[Candidate, ...] = ()
    """The best ones, best first; empty where a router gives no scores."""
    spent: tuple[Spent, ...] = ()


class Router(Protocol):
    """Names the smallest set of earlier steps that a request needs."""

    name: str

    def route(self, query: RouterQuery) -> Routing: ...
