"""`sam`: over a soft budget everything after the task is flushed into pages; the context keeps a cue for each page.

With `read=pages`, pages that match what the agent does now are read back, as if the agent had asked its memory tool for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec.structs import replace

from pamer_lab.blocks.render import render_message, task_text
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item, Spent, blocks_of, gaps, spans_of
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import SourceBlock
from pamer_lab.memory.terms import terms
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources, add_text, summary_spent
from pamer_lab.policies.plain import PlainPolicy, SummarySession
from pamer_lab.trajectory.values import Message

RECENT = 2
"""Number of newest blocks whose names and identifiers select the pages to read; blocks that are in a page themselves do not count."""


@dataclass(frozen=True)
class Sam(PlainPolicy):
    """Flushes everything, keeps cues, and reads pages back only with `read=pages`."""

    title: ClassVar[str] = "sam"
    description: ClassVar[str] = "over a soft budget all history becomes pages outside the context, with one cue each inside"
    sources: ClassVar[tuple[str, ...]] = ("SAM, arXiv 2605.24468", "qhjqhj00/cabeza, a refactoring of namespace-ERI/SAM")
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "everything after the first user message is flushed, without a recent tail; turns are packed into pages of 30,000 tokens"),
        ("paper", "pages have 32K tokens"),
        ("paper", "the soft budget is 64K of a 128K window; each page gets a cue that helps to continue"),
        ("code", "the memory tool reads at most five pages for a goal"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "cues are written by the profile's summariser, in at most 1,024 tokens (8,192 in the code); the trained memory model was not found",
        "cues are messages after the task, not part of it",
        "read=none is the paper's summary-only ablation; read=pages chooses pages by the names they share with the newest two blocks, "
        "while in the original the agent asks for them",
        "incomplete blocks stay in the context; a block longer than a page is one page, while the code splits it",
    )
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("black", "longdash")
    answers_queries: ClassVar[bool] = True
    """A running agent may ask for pages itself (`query_memory`)."""

    budget: int = field(default=64_000, metadata={"least": 1})
    """Request size in tokens above which the history is flushed."""
    page: int = field(default=30_000, metadata={"least": 1})
    """Size of a page in tokens; a block is never split."""
    read: str = field(default="none", metadata={"choices": ("none", "pages")})
    """`none`: cues only. `pages`: matching pages are read back."""
    most: int = field(default=5, metadata={"least": 1})
    """Maximum number of pages read back."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session(SummarySession):
    heading = "Page of memory: steps {first} to {last}"
    accumulates = True

    def __init__(self, policy: Sam, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy

    def turn(self, history: History) -> Decision:
        size = self.size(history)
        if size <= self.policy.budget:
            reason = f"the request has {size:,} tokens, within the soft budget of {self.policy.budget:,}"
            return self._reading(history, Decision("pass", reason, self.items(history)))
        waiting = self.waiting(history, history.t)
        before, spent = self.summaries, []
        try:
            for page in self._pages(history, waiting):
                item, cost = self.summarise(history, page)
                self.summaries = (*self.summaries, item)
                spent.append(cost)
        except LabError as error:
            self.summaries = before
            failed = self.fallback(history, history.tokens(spans_of(waiting)), error)
            return replace(failed, spent=(*spent, *failed.spent))
        if not spent:
            return Decision("pass", f"the request has {size:,} tokens, and nothing is left to flush", self.items(history))
        became = f"{counted(len(waiting), 'block')} became {counted(len(spent), 'page')}"
        reason = f"the request had {size:,} tokens, over {self.policy.budget:,}: {became}"
        return Decision("compress", reason, self.items(history), candidate_tokens=history.tokens(spans_of(waiting)), spent=tuple(spent))

    def _pages(self, history: History, blocks: Sequence[int]) -> list[list[int]]:
        pages: list[list[int]] = []
        size = 0
        for block in blocks:
            tokens = history.tokens([(block, block + 1)])
            if not pages or size + tokens > self.policy.page:
                pages.append([])
                size = 0
            pages[-1].append(block)
            size += tokens
        return pages

    def _reading(self, history: History, decision: Decision) -> Decision:
        """The decision, with the pages that match the newest blocks if `read=pages`."""
        if self.policy.read != "pages" or not self.summaries:
            return decision
        fresh = [block for block in blocks_of(gaps(self.covered(), history.t)) if block >= history.t - RECENT]
        recent = [message for block in fresh for message in history.block_messages(block)]
        wanted = _terms(recent) - terms(task_text(history.messages[: history.prefix_end]))
        pages = [self._page_terms(history, item) for item in self.summaries]
        if len(pages) > 1:
            wanted -= frozenset.intersection(*pages)  # names that are on every page do not distinguish pages
        fitting = sorted(((len(wanted & page), -number) for number, page in enumerate(pages)), reverse=True)
        chosen = sorted(-number for shared, number in fitting[: self.policy.most] if shared)
        if not chosen:
            return decision
        read: list[Item] = []
        spent: list[Spent] = []
        failed = ""
        try:
            for number in chosen:
                item, cost = self._page_item(history, self.summaries[number])
                read.append(item)
                spent.append(cost)
        except LabError as error:  # the pages that could be read are shown
            failed, usage = str(error), usage_of(error)
            spent += [Spent.of("summary", self.resources.summariser.name, usage)] if usage.calls else []
        if not read:
            return replace(decision, spent=tuple(spent), error=failed)
        place = len(history.head()) + len(self.summaries)
        items = (*decision.items[:place], *read, *decision.items[place:])
        steps = tuple(blocks_of(span for item in read for span in item.spans))
        reason = f"{decision.reason}; read again, for names they share with the newest blocks: {counted(len(read), 'page')}"
        return Decision("recall", reason, items, restored_steps=steps, spent=tuple(spent), error=failed)

    def query(self, asked: str, history: History) -> str:
        """An extract of the page that shares the most names with the agent's question."""
        pages = [(len(terms(asked) & self._page_terms(history, item)), number) for number, item in enumerate(self.summaries)]
        shared, number = max(pages, default=(0, 0))
        if not shared:
            return "Nothing in memory fits."
        source = [SourceBlock(step, tuple(history.block_messages(step))) for step in blocks_of(self.summaries[number].spans)]
        return self.resources.summariser.summarise(asked, source).text

    def _page_terms(self, history: History, page: Item) -> frozenset[str]:
        return _terms([message for step in blocks_of(page.spans) for message in history.block_messages(step)])

    def _page_item(self, history: History, cue: Item) -> tuple[Item, Spent]:
        """An extract of a page: a summary of its raw blocks in view of what the agent does now."""
        source = [SourceBlock(step, tuple(history.block_messages(step))) for step in blocks_of(cue.spans)]
        goal = "".join(render_message(message) for message in history.block_messages(history.t - 1))
        summary = self.resources.summariser.summarise(goal, source)
        text = f"[Read from memory, {cue.source}]\n{summary.text}\n[End of the page]"
        return add_text("recalled", text, cue.spans, self.resources.tokens, source=cue.source), summary_spent(
            summary, source, self.resources
        )


def _terms(messages: Sequence[Message]) -> frozenset[str]:
    """Names and identifiers in what was said, called and answered."""
    texts = [text for message in messages for text in (message.content, *(call.arguments for call in message.tool_calls))]
    return frozenset().union(*map(terms, texts))
