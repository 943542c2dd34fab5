"""`forget-half:T`: over T tokens or messages, the older half of the steps is dropped at once, as in Cline and OpenHands."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Span, blocks_of, spans_of
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy


@dataclass(frozen=True)
class ForgetHalf(PlainPolicy):
    """A sliding window that moves rarely and far, so that the prompt's beginning stays the same in between."""

    title: ClassVar[str] = "forget-half"
    description: ClassVar[str] = "when the request passes T tokens or messages, the older half of the steps after the first is dropped"
    sources: ClassVar[tuple[str, ...]] = (
        "cline/cline, src/core/context/context-management/ContextManager.ts, getNextTruncationRange",
        "All-Hands-AI/OpenHands, openhands/memory/condenser/impl/amortized_forgetting_condenser.py",
        "Roo Code, truncateConversation",
    )
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "code",
            "Cline: from 160,000 of 200,000 tokens on, half of the messages after the first user-assistant pair are removed, oldest first",
        ),
        ("code", "Cline: three quarters are removed if half of the request would still be over the limit"),
        ("code", "OpenHands: over 100 events, the newest 50 and those of `keep_first` stay"),
        ("code", "Roo Code removes half of the messages after the first, rounded down to pairs"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "complete blocks are counted and dropped, not single messages",
        "Cline first removes repeated file reads and drops nothing if that saves 30 %; dedupe-reads does that here",
        "Cline and Roo Code look at the usage of the previous request, this policy at the size of the current one; no notice is added",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("sky", "longdashdot")

    threshold: int = field(default=160_000, metadata={"least": 1})
    """Request size from which half of the steps are dropped: in tokens, or in messages with `of=messages`."""
    of: str = field(default="tokens", metadata={"choices": ("tokens", "messages")})
    """What the threshold counts: the request's tokens, or its messages."""
    first: int = field(default=1, metadata={"least": 0})
    """Number of oldest blocks that are always kept."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self)


class _Session:
    def __init__(self, policy: ForgetHalf) -> None:
        self.policy = policy
        self._kept_from = 0
        """The oldest block that stays after the first ones; it only moves forward."""
        self._waiting: list[int] = []
        """Blocks before it that stay until they have their result."""

    def turn(self, history: History) -> Decision:
        spans = self._spans(history)
        size, limit, of = self._size(history, spans), self.policy.threshold, self.policy.of
        if size < limit:
            return Decision("pass", f"the request has {size:,} {of}, less than {limit:,}", (*history.head(), *history.raw(spans)))
        start = max(self._kept_from, self.policy.first)
        there = [block for block in range(start, history.t) if history.blocks[block].complete]
        leaving = len(there) * (3 if size / 2 > limit else 2) // 4
        if leaving:
            self._kept_from = there[leaving - 1] + 1
            self._waiting += [block for block in range(start, self._kept_from) if not history.blocks[block].complete]
        reason = f"the request had {size:,} {of}, at least {limit:,}: {counted(leaving, 'block')} dropped"
        return Decision("pass", reason, (*history.head(), *history.raw(self._spans(history))))

    def _spans(self, history: History) -> tuple[Span, ...]:
        """What is kept: the first blocks, the newest ones, and those in between that wait for a result."""
        first = min(self.policy.first, history.t)
        kept_from = max(self._kept_from, first)
        self._waiting = [block for block in self._waiting if not history.blocks[block].complete]
        older = spans_of([*range(first), *self._waiting])
        if older and older[-1][1] == kept_from:
            return (*older[:-1], (older[-1][0], history.t))
        return (*older, (kept_from, history.t)) if kept_from < history.t else older

    def _size(self, history: History, spans: tuple[Span, ...]) -> int:
        if self.policy.of == "tokens":
            return history.tools_tokens + history.prefix_tokens + history.tokens(spans)
        return history.prefix_end + sum(history.blocks[last - 1].end - history.blocks[first].start for first, last in spans)

    def resume(self, decisions: Sequence[Decision]) -> None:
        self._kept_from, self._waiting = 0, []
        if decisions:
            there = {*blocks_of(span for item in decisions[-1].items if item.kind == "blocks" for span in item.spans)}
            gone = [block for block in range(len(decisions) - 1) if block not in there]
            self._kept_from = max(gone, default=-1) + 1
            self._waiting = sorted(block for block in there if self.policy.first <= block < self._kept_from)
