"""`masking-summary:N`: old results are masked at once, and every N turns the oldest turns become a summary."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.counts import counted
from pamer_lab.decisions import Item, gaps
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.observation_masking import Masking
from pamer_lab.policies.plain import PlainPolicy, SummarySession, arranged


@dataclass(frozen=True)
class MaskingSummary(PlainPolicy):
    """Masking delays the summary; the summary bounds the masked part."""

    title: ClassVar[str] = "masking-summary"
    description: ClassVar[str] = "results older than the newest M turns are masked; when N more turns wait, they become a summary"
    sources: ClassVar[tuple[str, ...]] = ("The Complexity Trap, arXiv 2508.21433, hybrid, and its code",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "a hybrid of masking and summaries costs 7 to 11 % less than either alone"),
        ("code", "when unsummarised turns reach n + m, the oldest n become a checkpoint that replaces the one before it"),
        (
            "code",
            "the hybrid's configurations mask all but the newest 10 results and have m = 10 with n = 21 or n = 43; 21 is the default here",
        ),
    )
    deviations: ClassVar[tuple[str, ...]] = ("summaries are written as PaMER's are, from the last summary and the raw blocks",)
    family: ClassVar[Family] = "host"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("green", "dashdot")

    n: int = field(default=21, metadata={"least": 1})
    """Number of turns that are summarised together."""
    m: int = field(default=10, metadata={"least": 1})
    """Number of newest turns that are neither masked nor summarised."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session(SummarySession):
    def __init__(self, policy: MaskingSummary, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy
        self._masking = Masking(resources)

    def due(self, history: History) -> tuple[list[int], str]:
        waiting = self.waiting(history, history.t - self.policy.m)
        if len(waiting) < self.policy.n:
            return [], f"{len(waiting)} of {self.policy.n} turns are waiting for the next summary; older results are masked"
        return waiting[: self.policy.n], f"{counted(len(waiting), 'turn')} older than the newest {self.policy.m}"

    def rest(self, history: History) -> Sequence[Item]:
        masked = self._masking.before(history, max(history.t - self.policy.m, 0))
        found: list[Item] = []
        for first, last in gaps(self.covered(), history.t):
            found += arranged(history, {block: masked[block] for block in range(first, last) if block in masked}, first, last)
        return found
