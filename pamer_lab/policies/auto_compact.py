"""`auto-compact:T`: over T tokens, everything but a tail becomes one summary, as in the automatic compaction of agent programs."""

from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.blocks import recent_start
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, SummarySession


@dataclass(frozen=True)
class AutoCompact(PlainPolicy):
    """One large summary at rare intervals: what most users actually run."""

    title: ClassVar[str] = "auto-compact"
    description: ClassVar[str] = "when the request passes T tokens, everything but the newest blocks becomes one summary"
    sources: ClassVar[tuple[str, ...]] = (
        "openai/codex, codex-rs/core/src/compact.rs",
        "google-gemini/gemini-cli, packages/core/src/services/chatCompressionService.ts",
        "Claude Code, automatic compaction (no public code)",
        "Tencent WorkBuddyBench, context_window",
    )
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "code",
            "Codex compacts at 90 % of the model's window; the first context, user messages up to 20,000 tokens and the summary remain",
        ),
        ("code", "Gemini CLI compresses from half of the model's window on; the newest 30 % of the history by size stay verbatim"),
        ("note", "Claude Code reserves 20,000 tokens for the summary and compacts when 13,000 more are left: at 167,000 of 200,000"),
        ("inferred", "the default of 160,000 is 80 % of 200,000; what stays verbatim differs between programs, so both are parameters"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "system prompt and task stay verbatim (some programs summarise the task); later user messages are summarised (Codex keeps them)",
        "a compaction may cut before any agent turn; Gemini CLI cuts only before a user message, so never in a session with a single one",
        "the summary reads the last summary and the blocks after it, and is written as PaMER's are (1,024 tokens)",
    )
    family: ClassVar[Family] = "host"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("green", "solid")

    threshold: int = field(default=160_000, metadata={"least": 1})
    """Request size in tokens above which it is compacted."""
    tail: int = field(default=1, metadata={"least": 0})
    """Number of newest complete blocks to keep."""
    keep: float = field(default=0.0, metadata={"least": 0, "most": 0.95})
    """Share of the steps' tokens to keep, newest first; 0: only the tail is kept."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session(SummarySession):
    def __init__(self, policy: AutoCompact, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy

    def due(self, history: History) -> tuple[list[int], str]:
        size, limit = self.size(history), self.policy.threshold
        if size <= limit:
            return [], f"the request has {size:,} tokens, within the threshold of {limit:,}"
        waiting = self.waiting(history, min(recent_start(history.blocks, self.policy.tail), self._newest_share(history)))
        if not waiting:
            return [], f"the request has {size:,} tokens, over {limit:,}, and nothing but the newest blocks could become a summary"
        return waiting, f"the request has {size:,} tokens, over the threshold of {limit:,}"

    def _newest_share(self, history: History) -> int:
        """The first of the newest blocks that together fit into the kept share."""
        first = max((last for _, last in self.covered()), default=0)
        end = history.cumulative[history.t]
        limit = self.policy.keep * (end - history.cumulative[first] + sum(item.tokens for item in self.summaries))
        return next(block for block in range(first, history.t + 1) if end - history.cumulative[block] <= limit)
