"""One compression as a transaction: summary, embedding, checks, then the commit.

Invariant: nothing is stored unless every step before it succeeded and the request becomes shorter; after the commit nothing can fail. A
failure at any point leaves the store unchanged.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from pamer_lab.blocks import TokenCounter
from pamer_lab.controller.plan import Plan
from pamer_lab.controller.recall import checked, embedded
from pamer_lab.controller.request import Chat
from pamer_lab.decisions import Spent, charging
from pamer_lab.errors import LabError, ModelError
from pamer_lab.memory import CoveredBlock, DetailWriter, Memories, Memory, MemoryDraft, SourceBlock, Summariser, Summary
from pamer_lab.memory.records import pack, unpack
from pamer_lab.memory.summary import faults
from pamer_lab.models.embedder import Embedder

Stage = Callable[[str], AbstractContextManager[None]]
"""Measures the time of a named stage."""


class NoReductionError(LabError):
    """Raised when a compression would not make the request shorter; nothing is stored."""


@dataclass(frozen=True)
class Compressed:
    """A stored compression."""

    memory: Memory
    messages: list[Chat]


class Compressor:
    """Turns the candidate blocks of a plan into one stored memory."""

    def __init__(
        self,
        store: Memories,
        summariser: Summariser,
        embedder: Embedder,
        counter: TokenCounter,
        *,
        summary_tokens: int,
        details: DetailWriter | None = None,
    ) -> None:
        self._store = store
        self._summariser = summariser
        self._details = details
        self._embedder = embedder
        self._counter = counter
        self._summary_tokens = summary_tokens

    def compress(self, plan: Plan, stage: Stage, spent: list[Spent]) -> Compressed:
        """Store the plan's old blocks as a memory; the cost of its calls is added to `spent`, even if it fails."""
        request = plan.request
        raw = [pack(request.chat_of_block(number)) for number in plan.old]
        for number, block in zip(plan.old, raw, strict=True):
            if unpack(block) != request.chat_of_block(number):
                raise LabError(f"block {number} differs from its archived copy")
        with stage("summary"):
            summary = self._summary(plan, spent)
        with stage("embedding"):
            vector = embedded(self._embedder, summary.text)
        size = self._counter.count([summary.text])[0]
        messages = checked(request.rebuilt(plan.retained), request, plan.retained, ())
        self._require_reduction(plan, size)
        draft = MemoryDraft(
            session_id=plan.memory.session_id,
            summary=summary.text,
            vector=vector,
            blocks=tuple(
                CoveredBlock(number, request.block_ids[number], block.raw_hash, detail, request.block_tokens[number])
                for number, block, detail in zip(plan.old, raw, summary.details, strict=True)
            ),
            summary_tokens=size,
            tokenizer=self._counter.name,
            summary_model=f"{self._summariser.name}, details {self._details.name}" if self._details else self._summariser.name,
            embedding_model=self._embedder.name,
        )
        with stage("storage"):
            memory = self._store.commit(draft, raw, plan.memory)
        return Compressed(memory, messages)

    def _summary(self, plan: Plan, spent: list[Spent]) -> Summary:
        request = plan.request
        blocks = [SourceBlock(number, tuple(request.blocks[number].of(request.messages))) for number in plan.old]
        later = [request.messages[request.blocks[number].start] for number in plan.retained if number > plan.old[-1]]
        with charging("summary", self._summariser.name, spent):
            summary = self._summariser.summarise(request.task, blocks, later)
        spent.append(Spent.of("summary", self._summariser.name, summary.usage))
        if self._details:
            with charging("details", self._details.name, spent):
                described = self._details.describe(request.task, blocks)
            spent.append(Spent.of("details", self._details.name, described.usage))
            summary = replace(summary, details=described.lines)
        if found := faults(summary, blocks):
            raise ModelError(f"{self._summariser.name}: {'; '.join(found)}")
        return summary

    def _require_reduction(self, plan: Plan, summary_tokens: int) -> None:
        before, after = plan.tokens(plan.active), plan.tokens(plan.retained)
        if after >= before:
            raise NoReductionError(f"the request would not become shorter ({before:,} tokens before, {after:,} after)")
        if summary_tokens >= plan.candidate_tokens:
            raise NoReductionError(f"the summary is no shorter ({summary_tokens:,} tokens) than the blocks ({plan.candidate_tokens:,})")
        if summary_tokens > self._summary_tokens:
            raise NoReductionError(f"the summary has {summary_tokens:,} tokens, over its limit of {self._summary_tokens:,}")
