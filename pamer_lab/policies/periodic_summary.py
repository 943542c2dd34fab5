"""`periodic-summary:N`: every N blocks the older history becomes a summary that stays in the context."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pamer_lab.blocks import recent_start
from pamer_lab.blocks.render import task_text
from pamer_lab.controller.plan import halved
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.decisions import Decision, Item, Span, Spent, blocks_of, gaps, spans_of
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import BUDGET, SHORTEST, SourceBlock
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Family, History, Need, Offered, PolicySession, Resources, add_text, summary_spent
from pamer_lab.trajectory.values import Message


@dataclass(frozen=True)
class PeriodicSummary:
    """Summaries by the clock: no head, no memory, no recall."""

    needs_models: ClassVar[bool] = False
    description: ClassVar[str] = "every N complete blocks, all but the newest become a summary that stays in the context"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, Periodic Summary (n = 3, 5)",)
    family: ClassVar[Family] = "baseline"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("brown", "dashdot")
    offered: ClassVar[Offered] = "first"
    acts_live: ClassVar[bool] = True
    deviations: ClassVar[tuple[str, ...]] = (
        "the paper gives N only: here N counts complete blocks that have left the newest `keep`",
        "reset writes one new summary of everything older, from the raw blocks while each message can keep 120 characters of the source "
        "budget, then from the last summary's text and the new slice; accumulate adds a summary of the new slice",
        "summaries are written as PaMER's are (about 40,000 characters of source, 1,024 tokens), so that only the trigger differs",
        "after two failed summaries the oldest waiting blocks alone are summarised (with the last summary's text, in reset)",
        "raw blocks are not archived: what the summary does not say is gone",
    )

    n: int = field(default=5, metadata={"least": 1})
    """Complete blocks between two summaries."""
    mode: str = field(default="reset", metadata={"choices": ("reset", "accumulate")})
    """`reset`: one summary of everything older replaces the last one. `accumulate`: one more summary is added."""
    keep: int = field(default=1, metadata={"least": 0})
    """Newest complete blocks that are never summarised."""

    @property
    def name(self) -> str:
        kept = f":keep={self.keep}" if self.keep != 1 else ""
        return f"periodic-summary:{self.n}" + (f":{self.mode}" if self.mode != "reset" else "") + kept

    def settings(self, resources: Resources) -> dict[str, Any]:
        return {"n": self.n, "mode": self.mode, "keep": self.keep} | resources.identity()

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session:
    def __init__(self, policy: PeriodicSummary, resources: Resources) -> None:
        self.policy, self.resources = policy, resources
        self.summaries: tuple[Item, ...] = ()
        self.failures = 0
        """Summaries that failed, less those that succeeded after them."""

    def turn(self, history: History) -> Decision:
        covered = self._covered()
        # A summary takes every complete block that is old enough, so whatever waits is newer than the newest one covered.
        first, last = covered[-1][1] if covered else 0, recent_start(history.blocks, self.policy.keep)
        waiting = [number for number in range(first, last) if history.blocks[number].complete]
        candidate = history.tokens(spans_of(waiting))
        if len(waiting) < self.policy.n:
            reason = f"{len(waiting)} of {self.policy.n} blocks are waiting for the next summary"
            return Decision("pass", reason, self._items(history), candidate_tokens=candidate)
        halvings = max(0, self.failures - ControllerSettings().failures_before_shorter + 1)
        chosen = waiting[: halved(len(waiting), halvings)]
        try:
            item, spent = self._summarise(history, chosen, from_raw=not halvings and self._fits(history, chosen[-1]))
        except LabError as error:
            self.failures += 1
            return self._fallback(history, candidate, error)
        self.failures = max(0, self.failures - 1)
        self.summaries = (item,) if self.policy.mode == "reset" else (*self.summaries, item)
        size = len(blocks_of(item.spans))
        reason = f"{len(waiting)} blocks have left the newest {self.policy.keep}: {size} blocks became a summary of {item.tokens} tokens"
        return Decision("compress", reason, self._items(history), candidate_tokens=candidate, spent=(spent,))

    def resume(self, decisions: Sequence[Decision]) -> None:
        kept = [decision for decision in decisions if decision.action != "fallback"]
        self.summaries = tuple(item for item in kept[-1].items if item.kind == "summary") if kept else ()
        self.failures = 0
        for decision in decisions:
            self.failures = self.failures + 1 if decision.action == "fallback" else max(0, self.failures - (decision.action == "compress"))

    def _fallback(self, history: History, candidate: int, error: LabError) -> Decision:
        usage = usage_of(error)
        return Decision(
            "fallback",
            "the summary failed; the request is sent unchanged",
            (*history.head(), *history.raw([(0, history.t)])),
            candidate_tokens=candidate,
            error=str(error),
            spent=(Spent.of("summary", self.resources.summariser.name, usage),) if usage.calls else (),
        )

    def _items(self, history: History) -> tuple[Item, ...]:
        return (*history.head(), *self.summaries, *history.raw(gaps(self._covered(), history.t)))

    def _covered(self) -> list[Span]:
        """What the summaries stand for, in order."""
        return [span for item in self.summaries for span in item.spans]

    def _fits(self, history: History, last: int) -> bool:
        """Whether the messages up to a block can all be in a summary's source: past that, reading them again would say little more of
        each, and a replay's time would grow with the square of its turns."""
        return (history.blocks[last].end - history.prefix_end) * SHORTEST <= BUDGET

    def _summarise(self, history: History, waiting: list[int], *, from_raw: bool) -> tuple[Item, Spent]:
        """A summary of the waiting blocks; in `reset` also of what was summarised before, from its raw blocks or from its summary."""
        before = blocks_of(self._covered()) if self.policy.mode == "reset" else []
        covered = before + waiting
        blocks = [SourceBlock(number, tuple(history.block_messages(number))) for number in (covered if from_raw else waiting)]
        if before and not from_raw:
            blocks.insert(0, SourceBlock(before[0], tuple(Message("user", item.text) for item in self.summaries)))
        summary = self.resources.summariser.summarise(task_text(history.messages[: history.prefix_end]), blocks)
        text = f"[Summary of steps {covered[0]} to {covered[-1]} of this session]\n{summary.text}\n[End of the summary]"
        item = add_text("summary", text, spans_of(covered), self.resources.tokens, source=f"steps {covered[0]}-{covered[-1]}")
        return item, summary_spent(summary, blocks, self.resources)
