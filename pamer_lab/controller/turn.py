"""The state of one request while it is decided: what is known so far, the time of each stage, and the decision it becomes.

Knows nothing of stores or models. Invariant: every decision carries its reason, its tokens before and after, the votes if there
were any, and whatever went wrong on the way.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pamer_lab.controller.gate import Verdict
from pamer_lab.controller.plan import Plan
from pamer_lab.controller.probe import Votes
from pamer_lab.controller.request import Request
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.decisions import BlockState, Decision, Spent, block_states, letters


class RequestDecision(Decision, frozen=True, kw_only=True):
    """The decision about a live request, and what the controller measured of it."""

    session_id: str = ""
    turn: int = 0
    """The decision point: number of blocks in the caller's history."""
    tokens_before: int = 0
    """Tokens of the request as it came, tools included."""
    tokenizer: str = ""
    memories: int = 0
    """Number of valid memories of the session before this request."""
    timings: dict[str, float] = msgspec.field(default_factory=dict)
    """Milliseconds per stage, and `total`."""

    @property
    def tokens_after(self) -> int:
        """Tokens of the request as it is returned, tools included."""
        return self.tokens

    @property
    def probabilities(self) -> tuple[float, ...]:
        return Votes(self.logits, self.thresholds).probabilities

    @property
    def vote_count(self) -> int:
        return sum(self.votes)

    @property
    def block_states(self) -> tuple[BlockState, ...]:
        """One state per block of the caller's history."""
        return tuple(block_states(letters(self, self.turn)))


@dataclass
class DecisionBuilder:
    """Filled while a request is processed."""

    session_id: str
    tokenizer: str
    started: float = field(default_factory=time.perf_counter)
    timings: dict[str, float] = field(default_factory=dict)
    request: Request | None = None
    plan: Plan | None = None
    votes: Votes | None = None
    verdict: Verdict | None = None
    """The verdict of the priced gate, once the heads voted for compression; or of the trigger in place of heads."""
    errors: list[str] = field(default_factory=list)
    spent: list[Spent] = field(default_factory=list)
    """Auxiliary work so far, successful or not."""
    idle: float | None = None
    """Seconds since the session's last request; None if unknown."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times the code inside."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + (time.perf_counter() - began) * 1000

    def not_compressed(self, current: Plan, settings: ControllerSettings) -> str:
        """Why this request was not compressed, as a sentence."""
        if not settings.compression:
            return "compression is switched off"
        if self.votes is not None and self.verdict is not None:
            return f"{sum(self.votes.votes)} of {len(self.votes.votes)} heads voted for compression; {self.verdict.reason}"
        if self.votes is not None:
            return f"only {sum(self.votes.votes)} of {len(self.votes.votes)} heads voted for compression, {settings.vote} are needed"
        if self.verdict is not None:
            return self.verdict.reason
        if not current.old:
            return "there is no older block to compress"
        if current.candidate_tokens < settings.minimum_candidate_tokens:
            return f"the older blocks have {current.candidate_tokens:,} tokens, under {settings.minimum_candidate_tokens:,}"
        return "the probe failed, so nothing was compressed"

    def decision(self, current: Plan, **facts: Any) -> RequestDecision:
        """The decision, with what is known of the turn."""
        return self._complete(
            turn=len(current.request.blocks),
            tokens_before=current.request.tokens,
            candidate_tokens=current.candidate_tokens,
            memories=len(current.memory.memories),
            error="; ".join(self.errors),
            **facts,
        )

    def fallback(self, reason: str, error: str) -> RequestDecision:
        """The decision to return the caller's own list, untouched."""
        request, current = self.request, self.plan
        blocks = len(request.blocks) if request else 0
        return self._complete(
            action="fallback",
            reason=f"{reason}; the request is returned unchanged",
            turn=blocks,
            tokens_before=request.tokens if request else 0,
            candidate_tokens=current.candidate_tokens if current else 0,
            memories=len(current.memory.memories) if current else 0,
            error="; ".join(dict.fromkeys([*self.errors, error])),
            items=request.items(range(blocks)) if request else (),
            stored=current.left_out(current.active) if current else (),
        )

    def _complete(self, **facts: Any) -> RequestDecision:
        votes = self.votes
        return RequestDecision(
            **facts,
            session_id=self.session_id,
            tokenizer=self.tokenizer,
            spent=tuple(self.spent),
            logits=votes.logits if votes else (),
            thresholds=votes.thresholds if votes else (),
            votes=votes.votes if votes else (),
            timings={**self.timings, "total": (time.perf_counter() - self.started) * 1000},
        )
