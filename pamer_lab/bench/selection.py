"""`bench selection`: the deterministic routers on generated traces, whose needed steps are known.

At every decision point with a recall label the blocks older than Recent2 are covered by memories of a few steps each, as a controller
would have left them, and the router chooses: the default one over the index, and for comparison the one over the raw archive
(`*_archive`). References at the same points, for the default router: every step of the chosen summaries, as many random steps,
as many of the most recent steps. The paper's volume identity is asserted for every selection.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pamer_lab.blocks import MessageTokens, cut, identities
from pamer_lab.controller import as_chat
from pamer_lab.controller.router import RouterQuery
from pamer_lab.controller.router_embedded import EmbeddedRouter
from pamer_lab.controller.router_index import ArchiveSource
from pamer_lab.controller.selection import Selection, select
from pamer_lab.corpus.writer import write_corpus
from pamer_lab.errors import LabError
from pamer_lab.memory import CoveredBlock, Memory, MemoryDraft, SessionMemory, SourceBlock
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.records import pack, seal
from pamer_lab.models.embedder import load_embedder
from pamer_lab.models.profiles import load_profile
from pamer_lab.models.tokenizer import embedded_counter
from pamer_lab.trajectory.formats.native import NativeTrace
from pamer_lab.trajectory.values import Message, Trace

HELP = "the step routers (index and archive) against known needs, and three references"
SEED, QUESTIONS, REPLICAS = 4_000, 20, 2
"""A seed that no shipped corpus uses."""
STEPS_PER_MEMORY = 4
RECENT = 2


@dataclass
class Score:
    """Chosen against needed steps, summed over decision points."""

    hits: int = 0
    chosen: int = 0
    needed: int = 0
    exact: int = 0
    points: int = 0

    def add(self, chosen: set[int], needed: set[int]) -> None:
        self.hits += len(chosen & needed)
        self.chosen += len(chosen)
        self.needed += len(needed)
        self.exact += chosen == needed
        self.points += 1

    @property
    def precision(self) -> float:
        return self.hits / self.chosen if self.chosen else 0.0

    @property
    def recall(self) -> float:
        return self.hits / self.needed if self.needed else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.hits / (self.chosen + self.needed) if self.chosen + self.needed else 0.0


@dataclass
class Case:
    """One decision point: what is covered, what is recent, what is needed."""

    query: RouterQuery
    needed: set[int]
    tokens: dict[int, int] = field(default_factory=dict)
    t: int = 0
    trace: Trace | NativeTrace | None = None


@dataclass
class Routed:
    """One router over all decision points."""

    router: EmbeddedRouter
    score: Score = field(default_factory=Score)
    tokens: dict[str, int] = field(default_factory=lambda: {"chosen": 0, "covered": 0})
    """Counted at points that need a step."""
    no_need: dict[str, int] = field(default_factory=lambda: {"points": 0, "kept_quiet": 0})

    def route(self, case: Case) -> Selection:
        selection = select(case.query.memory, self.router.route(case.query).answer)
        _assert_volume(selection)
        self.score.add(set(selection.steps), case.needed)
        if case.needed:
            self.tokens["chosen"] += selection.tokens
            self.tokens["covered"] += sum(case.tokens.values())
        else:
            self.no_need["points"] += 1
            self.no_need["kept_quiet"] += not selection.steps
        return selection

    def ratios(self, suffix: str = "") -> dict[str, float]:
        found = {
            "f1": self.score.f1,
            "precision": self.score.precision,
            "recall": self.score.recall,
            "exact_match": self.score.exact / max(self.score.points, 1),
            "token_share": self.tokens["chosen"] / max(self.tokens["covered"], 1),
        }
        return {f"{name}{suffix}": value for name, value in found.items()}

    def details(self) -> dict[str, Any]:
        return {"router": self.router.name, "chosen_steps": self.score.chosen, "no_need": self.no_need, "tokens": self.tokens}


def run(questions: int = QUESTIONS, replicas: int = REPLICAS) -> tuple[dict[str, Any], dict[str, Any]]:
    chance = random.Random(SEED)  # noqa: S311
    whole, at_random, recent = Score(), Score(), Score()
    raw: dict[str, Sequence[Message]] = {}
    embedder = load_embedder(load_profile("embedded"))
    index = Routed(EmbeddedRouter(embedder))
    archive = Routed(EmbeddedRouter(embedder, ArchiveSource(lambda blocks: {block.raw_hash: raw[block.raw_hash] for block in blocks})))
    for case in cases(write_corpus(SEED, questions, replicas), raw):
        selection = index.route(case)
        archive.route(case)
        chosen, covered = set(selection.steps), sorted(case.tokens)
        whole.add({step for memory in selection.memories for step in memory.steps}, case.needed)
        at_random.add(set(chance.sample(covered, len(chosen))), case.needed)
        recent.add(set(covered[len(covered) - len(chosen) :]), case.needed)
    ratios = index.ratios() | {"f1_whole_summary": whole.f1, "f1_random": at_random.f1, "f1_recent": recent.f1}
    details = {
        "decision_points": index.score.points,
        "needed_steps": index.score.needed,
        "index": index.details(),
        "archive": archive.details(),
        "whole_summary_tokens_identity": "asserted at every point",
        "embedder": embedder.name,
    }
    return ratios | archive.ratios("_archive"), details


def cases(traces: Iterable[Trace | NativeTrace], raw: dict[str, Sequence[Message]]) -> Iterator[Case]:
    """The points with a recall label; `raw` is filled with the blocks by hash."""
    counter = embedded_counter()
    tokens, summariser = MessageTokens(counter), ExtractiveSummariser(counter)
    for number, trace in enumerate(traces):
        messages = trace.messages
        pieces = cut(messages)
        blocks = [block.of(messages) for block in pieces.blocks]
        names = identities(blocks)
        archived = [pack([as_chat(message) for message in block]) for block in blocks]
        raw.update({entry.raw_hash: block for entry, block in zip(archived, blocks, strict=True)})
        task = "\n".join(message.content for message in messages[: pieces.prefix_end] if message.role == "user")
        sizes = [tokens.total(block) for block in blocks]
        known: dict[range, Memory] = {}
        for label in trace.labels:
            if label.target != "recall" or label.t <= RECENT:
                continue
            memories: list[Memory] = []
            for start in range(0, label.t - RECENT, STEPS_PER_MEMORY):
                steps = range(start, min(start + STEPS_PER_MEMORY, label.t - RECENT))
                if steps not in known:
                    summary = summariser.summarise(task, [SourceBlock(step, tuple(blocks[step])) for step in steps])
                    covered = tuple(
                        CoveredBlock(step, names[step], archived[step].raw_hash, detail, sizes[step])
                        for step, detail in zip(steps, summary.details, strict=True)
                    )
                    draft = MemoryDraft(f"t{number}", summary.text, np.ones(1, dtype=np.float32), covered, 0, counter.name, "", "")
                    known[steps] = seal(draft, len(memories), datetime(2026, 1, 1, tzinfo=UTC))
                memories.append(known[steps])
            session = SessionMemory(f"t{number}", tuple(memories), (), len(memories))
            recent = tuple(tuple(blocks[step]) for step in range(label.t - RECENT, label.t))
            needed = set(label.steps) if label.value else set()
            yield Case(RouterQuery(task, recent, session), needed, {step: sizes[step] for step in range(label.t - RECENT)}, label.t, trace)


def _assert_volume(selection: Selection) -> None:
    """The paper's identity: a selection saves exactly the tokens of the steps that were not chosen."""
    left_out = sum(block.tokens for memory in selection.memories for block in memory.blocks if block.step not in selection.steps)
    if selection.covered_tokens - selection.tokens != left_out or left_out < 0:
        raise LabError("the volume identity does not hold; this is a fault of the program")
