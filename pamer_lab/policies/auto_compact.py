"""`auto-compact:T`: over T tokens, everything but a tail becomes one summary, as agent programs do by themselves."""

from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.blocks import recent_start
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, SummarySession


@dataclass(frozen=True)
class AutoCompact(PlainPolicy):
    """One large summary, rarely: the baseline that most users really have."""

    title: ClassVar[str] = "auto-compact"
    description: ClassVar[str] = "when the request passes T tokens, everything but the newest blocks becomes one summary"
    sources: ClassVar[tuple[str, ...]] = ("Claude Code and Codex, automatic compaction", "Tencent WorkBuddyBench, context_window")
    facts: ClassVar[tuple[Fact, ...]] = (
        ("note", "Claude Code compacts at about 80 to 95 % of its window, Codex at a token limit; 160,000 is 80 % of 200,000"),
        ("inferred", "how many newest steps stay verbatim differs between programs; here it is a parameter"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "system prompt and task stay verbatim; some programs put the task into the summary",
        "the summary reads the last summary and the blocks after it, and is written as PaMER's are (1,024 tokens)",
    )
    family: ClassVar[Family] = "host"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("green", "solid")

    threshold: int = field(default=160_000, metadata={"least": 1})
    """Tokens of a request above which it is compacted."""
    tail: int = field(default=1, metadata={"least": 0})
    """Newest complete blocks that stay."""

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
        waiting = self.waiting(history, recent_start(history.blocks, self.policy.tail))
        if not waiting:
            return [], f"the request has {size:,} tokens, over {limit:,}, and nothing but the newest blocks could become a summary"
        return waiting, f"the request has {size:,} tokens, over the threshold of {limit:,}"
