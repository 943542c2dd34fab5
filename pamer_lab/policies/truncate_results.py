"""`truncate-results:N`: a tool result over N tokens keeps its beginning and end when it is no longer recent."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.blocks import recent_start
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import clip
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened

TRUNCATED = "truncated"


@dataclass(frozen=True)
class TruncateResults(PlainPolicy):
    """Shortens each large result once and never touches it again."""

    title: ClassVar[str] = "truncate-results"
    description: ClassVar[str] = "a tool result over N tokens keeps its beginning and end once it has left the newest blocks"
    sources: ClassVar[tuple[str, ...]] = ("agent programs' limits on tool output",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("inferred", "programs differ in their limits and cut when a result arrives; 1,000 tokens and two recent blocks are our choice"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "a result is cut when it has left the newest `keep` complete blocks, since the recorded agent saw it in full",
        "tokens are converted to characters by the result's own ratio",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("green", "longdash")

    n: int = field(default=1_000, metadata={"least": 1})
    """Result size in tokens above which it is cut."""
    keep: int = field(default=2, metadata={"least": 0})
    """Number of newest complete blocks whose results are left unchanged."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session:
    def __init__(self, policy: TruncateResults, resources: Resources) -> None:
        self._arranged = Arranged()
        self.policy = policy
        self._shortened = Shortened(resources.tokens)
        self._items: dict[int, Item | None] = {}
        self._done = 0

    def turn(self, history: History) -> Decision:
        last = recent_start(history.blocks, self.policy.keep)
        for block in range(self._done, last):
            item = self._shortened.block(history, block, TRUNCATED, self._cut(history, block))
            if item is not None:
                self._items[block] = item
        self._done = max(self._done, last)
        reason = f"results over {self.policy.n:,} tokens in {counted(len(self._items), 'older block')} keep their beginning and end"
        return Decision("pass", reason, (*history.head(), *self._arranged(history, self._items)))

    def _cut(self, history: History, block: int) -> dict[int, str]:
        messages = history.block_messages(block)
        sizes = {place: self._shortened.size(messages[place]) for place in self._shortened.results.of(history, block)}
        return {
            place: clip(messages[place].content, max(len(messages[place].content) * self.policy.n // size, 1))
            for place, size in sizes.items()
            if size > self.policy.n
        }

    def resume(self, decisions: Sequence[Decision]) -> None:
        """What is cut follows from the history."""
