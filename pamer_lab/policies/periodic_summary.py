"""`periodic-summary:N`: every N blocks the older history becomes a summary that stays in the context."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.blocks import recent_start
from pamer_lab.controller.plan import halved
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item, Spent, spans_of
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, Offered, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, SummarySession


@dataclass(frozen=True)
class PeriodicSummary(PlainPolicy):
    """Summaries at fixed intervals: no heads, no memory, no recall."""

    title: ClassVar[str] = "periodic-summary"
    description: ClassVar[str] = "every N complete blocks, all but the newest become a summary that stays in the context"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, Periodic Summary (n = 3, 5)",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "n is 3 or 5; the paper does not say what is summarised and what stays"),
        ("inferred", "every n blocks, all before the newest one become one summary; the new one replaces the last (ACON calls this reset)"),
    )
    family: ClassVar[Family] = "baseline"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("brown", "dashdot")
    offered: ClassVar[Offered] = "first"
    acts_live: ClassVar[bool] = True
    deviations: ClassVar[tuple[str, ...]] = (
        "the paper gives only N: here N counts complete blocks older than the newest `keep`",
        "reset writes one new summary of everything older, from the raw blocks while each message can keep 120 characters of the source "
        "budget, then from the last summary's text and the new slice; accumulate adds a summary of the new slice",
        "summaries are written as PaMER's are (about 40,000 characters of source, 1,024 tokens), so that only the trigger differs",
        "after two failed summaries the oldest waiting blocks alone are summarised (with the last summary's text, in reset)",
        "raw blocks are not archived: what the summary leaves out is lost",
    )

    n: int = field(default=5, metadata={"least": 1})
    """Number of complete blocks between two summaries."""
    mode: str = field(default="reset", metadata={"choices": ("reset", "accumulate")})
    """`reset`: one summary of everything older replaces the last one. `accumulate`: each new summary is added."""
    keep: int = field(default=1, metadata={"least": 0})
    """Number of newest complete blocks that are never summarised."""

    @property
    def name(self) -> str:
        """Like every policy's, but always with N, in which the paper's two rows differ."""
        kept = f":keep={self.keep}" if self.keep != 1 else ""
        return f"{self.title}:{self.n}" + (f":{self.mode}" if self.mode != "reset" else "") + kept

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session(SummarySession):
    def __init__(self, policy: PeriodicSummary, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy
        self.accumulates = policy.mode == "accumulate"
        self.failures = 0
        """Failed summaries minus later successes."""

    @property
    def halvings(self) -> int:
        return max(0, self.failures - ControllerSettings().failures_before_shorter + 1)

    def due(self, history: History) -> tuple[list[int], str]:
        waiting = self._old(history)
        if len(waiting) < self.policy.n:
            return [], f"{len(waiting)} of {self.policy.n} blocks are waiting for the next summary"
        reason = f"{counted(len(waiting), 'block')} older than the newest {self.policy.keep}"
        return waiting[: halved(len(waiting), self.halvings)], reason

    def candidate(self, history: History, blocks: Sequence[int]) -> int:
        return history.tokens(spans_of(self._old(history)))

    def rereads(self, history: History, blocks: Sequence[int]) -> bool:
        return not self.halvings and self.fits_source(history, blocks)

    def summarise(self, history: History, blocks: Sequence[int]) -> tuple[Item, Spent]:
        found = super().summarise(history, blocks)
        self.failures = max(0, self.failures - 1)
        return found

    def fallback(self, history: History, candidate: int, error: LabError) -> Decision:
        self.failures += 1
        return super().fallback(history, candidate, error)

    def resume(self, decisions: Sequence[Decision]) -> None:
        super().resume(decisions)
        self.failures = 0
        for decision in decisions:
            self.failures = self.failures + 1 if decision.action == "fallback" else max(0, self.failures - (decision.action == "compress"))

    def _old(self, history: History) -> list[int]:
        """Complete blocks older than the newest ones that are in no summary yet."""
        return self.waiting(history, recent_start(history.blocks, self.policy.keep))
