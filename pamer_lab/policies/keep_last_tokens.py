"""`keep-last-tokens:N`: only the newest N tokens of tool output stay; older results are cleared."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.decisions import Decision, Item
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened

CLEARED = "cleared"
PLACEHOLDER = "[Old tool result content cleared]"


@dataclass(frozen=True)
class KeepLastTokens(PlainPolicy):
    """Clears the oldest results first, in steps large enough to be worth breaking the cache."""

    title: ClassVar[str] = "keep-last-tokens"
    description: ClassVar[str] = "the newest N tokens of tool output stay; older results are cleared once enough can go"
    sources: ClassVar[tuple[str, ...]] = ("anomalyco/opencode, packages/opencode/src/session/compaction.ts, prune",)
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "code",
            "opencode protects the newest 40,000 tokens of tool output (PRUNE_PROTECT) and prunes only if more than 20,000 can be removed",
        ),
        ("code", "what is pruned stays pruned"),
        ("note", "a pruned output is replaced by the placeholder used here"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "the results of one block are cleared together; opencode clears them one by one",
        "opencode keeps the last two user turns, and therefore prunes nothing in a session with one user message; "
        "neither these nor its protected tool (`skill`) are protected here",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("green", "dot")

    n: int = field(default=40_000, metadata={"least": 0})
    """Number of newest tokens of tool output that are never cleared."""
    minimum: int = 20_000
    """Nothing is cleared until more than this many tokens can be; 0 clears immediately."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session:
    def __init__(self, policy: KeepLastTokens, resources: Resources) -> None:
        self._arranged = Arranged()
        self.policy = policy
        self._shortened = Shortened(resources.tokens)
        self._sizes: list[int] = []
        self._protected_from = 0
        """First block of the newest results that are kept; it only moves forward."""
        self._protected = 0
        """Tokens of their results, at most `n`."""
        self._clearable: dict[int, Item] = {}
        self._clearable_tokens = 0
        self._cleared: dict[int, Item | None] = {}
        self._first = 0
        """First block after those that were cleared before the session was resumed."""

    def turn(self, history: History) -> Decision:
        for block in range(len(self._sizes), history.t):
            messages = history.block_messages(block)
            self._sizes.append(sum(self._shortened.size(messages[place]) for place in self._shortened.results.of(history, block)))
            self._protected += self._sizes[block]
        self._move_on(history)
        size = self._clearable_tokens
        if self._clearable and size > self.policy.minimum:
            self._cleared |= self._clearable
            self._clearable, self._clearable_tokens = {}, 0
            reason = f"{size:,} tokens of results are older than the newest {self.policy.n:,} and are cleared"
        else:
            reason = f"{size:,} tokens of results could be cleared, not more than the minimum of {self.policy.minimum:,}"
        return Decision("pass", reason, (*history.head(), *self._arranged(history, self._cleared)))

    def _move_on(self, history: History) -> None:
        """Unprotect the oldest blocks until the rest fits; those that can be shortened become clearable."""
        while self._protected > self.policy.n:
            block, size = self._protected_from, self._sizes[self._protected_from]
            if block >= self._first and size and (item := self._clear(history, block)) is not None:
                self._clearable[block] = item
                self._clearable_tokens += size
            self._protected -= size
            self._protected_from += 1

    def _clear(self, history: History, block: int) -> Item | None:
        places = self._shortened.results.of(history, block)
        return self._shortened.block(history, block, CLEARED, dict.fromkeys(places, PLACEHOLDER))

    def resume(self, decisions: Sequence[Decision]) -> None:
        last = decisions[-1].items if decisions else ()
        self._cleared = {item.spans[0][0]: item for item in last if item.source == CLEARED}
        self._first = max(self._cleared, default=-1) + 1
        self._sizes, self._protected_from, self._protected = [], 0, 0
        self._clearable, self._clearable_tokens = {}, 0
