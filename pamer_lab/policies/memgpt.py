"""`memgpt`: MemGPT's eviction as in Letta: when the window is nearly full, the older messages become a recursive summary."""

from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, SummarySession


@dataclass(frozen=True)
class MemGpt(PlainPolicy):
    """Keeps the newest share of the messages, by count, and one summary of everything before them."""

    title: ClassVar[str] = "memgpt"
    description: ClassVar[str] = "when the window is nearly full, all but the newest 30 % of the messages become one recursive summary"
    sources: ClassVar[tuple[str, ...]] = ("letta-ai/letta, services/summarizer/summarizer.py, partial eviction", "MemGPT, arXiv 2310.08560")
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "the first kept message is at round((1 - 0.30) * n) of n messages, then the next assistant message: the newest 30 % stay"),
        ("code", "the summary is a user message after the system message and covers everything between it and the first kept message"),
        ("code", "messages are clipped to 2,000 characters for the summary"),
        ("code", "the window is 32,000 tokens if none is set (global_max_context_window_limit)"),
        ("note", "memory pressure is announced at 0.75 of the window"),
        ("inferred", "eviction happens when the request would not fit into the window; here, when it exceeds the share `pressure` of it"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "the task stays verbatim; Letta evicts it with the other messages",
        "summaries are written as PaMER's are: the messages share 40,000 characters of source instead",
        "core and archival memory are edited by the agent itself and cannot be replayed",
        "incomplete blocks are never evicted",
    )
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("black", "dashdot")

    window: int = field(default=32_000, metadata={"least": 1})
    """Size of the model's context window in tokens."""
    pressure: float = field(default=1.0, metadata={"least": 0.01, "most": 1})
    """Share of the window above which messages are evicted."""
    keep: float = field(default=0.3, metadata={"least": 0, "most": 1})
    """Share of the messages to keep, newest first."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session(SummarySession):
    def __init__(self, policy: MemGpt, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy

    def due(self, history: History) -> tuple[list[int], str]:
        size, limit = self.size(history), self.policy.pressure * self.policy.window
        if size <= limit:
            return [], f"the request has {size:,} tokens, within {limit:,.0f}"
        waiting = self.waiting(history, self._first_kept(history))
        if not waiting:
            return [], f"the request has {size:,} tokens, over {limit:,.0f}, and the newest messages alone fill it"
        return waiting, f"the request has {size:,} tokens, over {limit:,.0f}"

    def _first_kept(self, history: History) -> int:
        """The block whose assistant message is the first one kept, counted over the messages now in the context."""
        there = [block for block in history.blocks if not any(first <= block.index < last for first, last in self.covered())]
        heads = history.prefix_end + len(self.summaries)
        target = round((1 - self.policy.keep) * (heads + sum(block.end - block.start for block in there)))
        place = heads
        for block in there:
            if place >= target:
                return block.index
            place += block.end - block.start
        return history.t
