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
    """Clears results from the oldest on, in steps large enough to be worth a broken cache."""

    title: ClassVar[str] = "keep-last-tokens"
    description: ClassVar[str] = "the newest N tokens of tool output stay; older results are cleared once enough can go"
    sources: ClassVar[tuple[str, ...]] = ("opencode, session/compaction.ts, prune",)
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "note",
            "opencode protects the newest 40,000 tokens of tool output and prunes only if more than 20,000 go (descriptions of its code)",
        ),
        ("note", "a pruned output is replaced by the placeholder used here and stays pruned"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "the results of one block are cleared together; opencode clears them one by one",
        "user turns and protected tools (`skill`) get no protection of their own",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("green", "dot")

    n: int = field(default=40_000, metadata={"least": 0})
    """Newest tokens of tool output that are never cleared."""
    minimum: int = 20_000
    """Tokens that must be clearable before anything is cleared; 0 clears at once."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session:
    def __init__(self, policy: KeepLastTokens, resources: Resources) -> None:
        self._arranged = Arranged()
        self.policy = policy
        self._shortened = Shortened(resources.tokens)
        self._sizes: list[int] = []
        self._cleared: dict[int, Item | None] = {}

    def turn(self, history: History) -> Decision:
        for block in range(len(self._sizes), history.t):
            messages = history.block_messages(block)
            self._sizes.append(sum(self._shortened.size(messages[place]) for place in self._shortened.results.of(history, block)))
        old = self._beyond(history)
        size = sum(self._sizes[block] for block in old)
        if old and size > self.policy.minimum:
            self._cleared |= {block: self._clear(history, block) for block in old}
            reason = f"{size:,} tokens of results are older than the newest {self.policy.n:,} and are cleared"
        else:
            reason = f"{size:,} tokens of results could be cleared, not more than the minimum of {self.policy.minimum:,}"
        return Decision("pass", reason, (*history.head(), *self._arranged(history, self._cleared)))

    def _beyond(self, history: History) -> list[int]:
        """Blocks whose results lie before the protected tokens and can be made shorter."""
        kept, found = 0, []
        for block in range(history.t - 1, -1, -1):
            if block in self._cleared:
                break
            kept += self._sizes[block]
            if kept > self.policy.n and self._sizes[block] and self._clear(history, block) is not None:
                found.append(block)
        return found[::-1]

    def _clear(self, history: History, block: int) -> Item | None:
        places = self._shortened.results.of(history, block)
        return self._shortened.block(history, block, CLEARED, dict.fromkeys(places, PLACEHOLDER))

    def resume(self, decisions: Sequence[Decision]) -> None:
        last = decisions[-1].items if decisions else ()
        self._cleared = {item.spans[0][0]: item for item in last if item.source == CLEARED}
