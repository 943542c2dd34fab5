"""`openhands-condenser:N`: over N messages, those between the first and the newest become one summary, down to half of N."""

from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.decisions import Item, gaps
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, SummarySession


@dataclass(frozen=True)
class OpenHandsCondenser(PlainPolicy):
    """The summary goes between the first and the newest steps, and replaces the previous one."""

    title: ClassVar[str] = "openhands-condenser"
    description: ClassVar[str] = "over N messages, all between the first and the newest become one summary, so that half of N remains"
    sources: ClassVar[tuple[str, ...]] = (
        "OpenHands/software-agent-sdk, openhands-sdk/openhands/sdk/context/condenser/llm_summarizing_condenser.py",
    )
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "condenses if the view has more than max_size = 120 events; keep_first = 4 events always stay"),
        (
            "code",
            "the newest max_size // 2 - keep_first - 1 events stay; those in between become a summary, written with the last one in view",
        ),
        ("code", "earlier versions have max_size = 100 and keep_first = 1"),
        ("inferred", "events are taken as messages: keep_first covers system prompt, task and the first step"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "blocks stay together, so a few messages less may remain",
        "summaries are written as PaMER's are (1,024 tokens), from the last summary and the raw blocks after it",
        "its optional token limit is left out (auto-compact has one), and so are the agent's own requests to condense",
    )
    family: ClassVar[Family] = "host"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("grey", "longdash")

    size: int = field(default=120, metadata={"least": 4})
    """Number of messages in a request above which it is condensed."""
    first: int = field(default=1, metadata={"least": 0})
    """Number of oldest blocks that are always kept, in addition to system prompt and task."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session(SummarySession):
    def __init__(self, policy: OpenHandsCondenser, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy

    def due(self, history: History) -> tuple[list[int], str]:
        limit, first = self.policy.size, min(self.policy.first, history.t)
        start = max((last for _, last in self.covered()), default=first)
        ends = [history.blocks[block].end for block in range(history.t)]
        end = ends[-1] if ends else history.prefix_end
        head = ends[first - 1] if first else history.prefix_end
        messages = head + len(self.summaries) + end - (ends[start - 1] if start else history.prefix_end)
        if messages <= limit:
            return [], f"the request has {messages:,} messages, at most {limit:,}"
        newest = limit // 2 - head - 1
        last = next((block for block in range(start, history.t) if end - history.blocks[block].start <= newest), history.t - 1)
        waiting = [block for block in self.waiting(history, last) if block >= first]
        reason = f"the request has {messages:,} messages, over {limit:,}"
        return (waiting, reason) if waiting else ([], f"{reason}, and nothing between the first and the newest")

    def items(self, history: History) -> tuple[Item, ...]:
        spans = gaps(self.covered(), history.t)
        before = [span for span in spans if self.summaries and span[1] <= self.policy.first]
        return (*history.head(), *history.raw(before), *self.summaries, *history.raw(spans[len(before) :]))
