"""The router without a model: which earlier steps speak of what the newest result just brought up?

The need are the names and identifiers of the recent blocks. Those that the newest result brings up weigh most, unless the agent is
just after them, or the result afterwards leads on to something that was not looked at yet. A step explains a term if it speaks
of it, best if the agent asked for it there, the answer names it, and the agent's next message took something from that
answer; not if the agent has said that answer again in the recent blocks. Steps are taken greedily, each for what it explains
beyond those before, as long as it is worth it; so the set is the smallest this finds, and it is empty where nothing earlier
explains the need. The embeddings of detail and raw block tell apart steps that explain the same, with a little
preference for the later one, which knew more. Deterministic.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pamer_lab.controller.router import Candidate, RouterQuery, Routing
from pamer_lab.controller.terms import BlockTerms, block_terms, superseded, terms
from pamer_lab.memory import CoveredBlock
from pamer_lab.memory.source import block_text
from pamer_lab.models.embedder import Embedder
from pamer_lab.trajectory.values import Message

NEW_IN_RESULT, NEW_IN_WORDS, KNOWN, IN_TASK = 1.0, 0.4, 0.1, 0.05
"""How much a term is needed: first mentioned by the newest result; by the agent's newest message; already dealt with in the
recent blocks; only in the task."""
ASKED_AND_ANSWERED, CALLED, ANSWERED, ASKED, DETAIL = 1.0, 0.6, 0.3, 0.2, 0.3
"""How well a step explains a term: the agent asked for it and the answer names it; its call names it and the answer does not (a
file rarely says its own path); only the answer; only the agent's words; only the step's detail line."""
SUPERSEDED = 0.3
"""How much a term is needed that the newest result brings up before it leads on to something unseen."""
UNUSED = 0.8
"""What remains of an answer's worth where the agent's next message takes nothing from it."""
RARITY = 0.5
"""Part of a term's weight that goes down with the number of steps that speak of it."""
LIKENESS = 0.15
"""Weight of the embeddings' cosine beside the terms."""
LATER = 0.05
"""What being the later of two equal steps is worth."""
LEAST_GAIN = 0.4
"""A step must explain at least so much to be taken, in units of one term that a single step explains fully."""
LEAST_SHARE = 0.5
"""A further step must explain at least this share of what the first did."""
MOST_STEPS = 6
KEPT = 20_000
"""Blocks whose terms and vectors are remembered."""

Read = Callable[[Sequence[CoveredBlock]], Mapping[str, Sequence[Message]]]
"""Raw messages of covered blocks, by raw hash."""


class EmbeddedRouter:
    """Deterministic, local, no language model."""

    name = "embedded-1"

    def __init__(self, embedder: Embedder, read: Read) -> None:
        self._embedder = embedder
        self._read = read
        self._terms: OrderedDict[str, BlockTerms] = OrderedDict()
        self._vectors: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()

    def route(self, query: RouterQuery) -> Routing:
        covered = [(memory.memory_id, block) for memory in query.memory.memories for block in memory.blocks]
        if not covered or not query.recent:
            return Routing(_answer([], {}, ""))
        blocks = [block for _, block in covered]
        missing = [block for block in blocks if block.raw_hash not in self._terms or block.raw_hash not in self._vectors]
        raw = self._read(missing) if missing else {}
        known = self._known(blocks, raw)
        need = _need(query, known)
        in_sight = frozenset().union(*(block_terms(messages).asked for messages in query.recent))
        gains = _gains(need, known, blocks, _following(query, known, blocks), in_sight)
        likeness = self._likeness(query, blocks, raw)
        scores = [
            sum(gain.values()) + LIKENESS * like + LATER * place / len(blocks)
            for place, (gain, like) in enumerate(zip(gains, likeness, strict=True))
        ]
        chosen = _greedy(gains, [LIKENESS * like + LATER * place / len(blocks) for place, like in enumerate(likeness)])
        order = sorted(range(len(blocks)), key=lambda place: (-scores[place], place))
        candidates = tuple(
            Candidate(covered[place][0], blocks[place].step, round(scores[place], 6), rank) for rank, place in enumerate(order, 1)
        )
        owners = {block.step: memory_id for memory_id, block in covered}
        steps = sorted(blocks[place].step for place in chosen)
        reasons = sorted({term for place in chosen for term, gain in gains[place].items() if gain > 0})
        return Routing(_answer(steps, owners, ", ".join(reasons[:5])), candidates)

    def _known(self, blocks: Sequence[CoveredBlock], raw: Mapping[str, Sequence[Message]]) -> list[BlockTerms]:
        for block in blocks:
            if block.raw_hash not in self._terms:
                self._terms[block.raw_hash] = block_terms(raw[block.raw_hash])
        found = [self._terms[block.raw_hash] for block in blocks]
        while len(self._terms) > max(KEPT, len(blocks)):
            self._terms.popitem(last=False)
        return found

    def _likeness(self, query: RouterQuery, blocks: Sequence[CoveredBlock], raw: Mapping[str, Sequence[Message]]) -> list[float]:
        """Cosine of each step to the newest block: the better of its detail's and its raw text's."""
        texts = {block.raw_hash: block_text(raw[block.raw_hash]) for block in blocks if block.raw_hash not in self._vectors}
        texts |= {block.detail: block.detail for block in blocks if block.detail not in self._vectors}
        if texts:
            self._vectors.update(zip(texts, self._embedder.embed(list(texts.values())), strict=True))
        newest = self._embedder.embed([block_text(query.recent[-1])])[0]
        keys = [block.raw_hash for block in blocks], [block.detail for block in blocks]
        raw_scores, detail_scores = (np.stack([self._vectors[key] for key in names]) @ newest for names in keys)  # (blocks,)
        found: list[float] = np.maximum(raw_scores, detail_scores).tolist()
        while len(self._vectors) > max(2 * KEPT, 2 * len(blocks)):
            self._vectors.popitem(last=False)
        return found


def _need(query: RouterQuery, known: Sequence[BlockTerms]) -> dict[str, float]:
    """Term -> how much it is needed and how much it tells, for terms that some earlier step speaks of."""
    *older, newest = [block_terms(messages) for messages in query.recent]
    shown: frozenset[str] = frozenset().union(*(block.aimed & block.answered for block in older))
    mentioned: frozenset[str] = frozenset().union(*(block.all for block in older))
    kinds: dict[str, float] = dict.fromkeys(terms(query.task), IN_TASK)
    for term in mentioned | newest.all:
        if term in newest.answered and term not in newest.aimed and term not in shown:
            kinds[term] = NEW_IN_RESULT
        elif term in newest.asked and term not in mentioned:
            kinds[term] = NEW_IN_WORDS
        else:
            kinds[term] = KNOWN
    present = Counter(term for block in known for term in block.all)
    looked_at = {term for block in known for term in block.asked}
    for term in superseded(query.recent[-1], looked_at):
        kinds[term] = min(kinds.get(term, 0.0), SUPERSEDED)
    scale = math.log(1 + len(known))
    return {
        term: kind * (RARITY * math.log((1 + len(known)) / present[term]) / scale + 1 - RARITY)
        for term, kind in kinds.items()
        if present[term]
    }


def _following(query: RouterQuery, known: Sequence[BlockTerms], blocks: Sequence[CoveredBlock]) -> list[frozenset[str]]:
    """For each step, what the agent said next: terms of the assistant message after it, where that is at hand."""
    said = {block.step: found.asked for block, found in zip(blocks, known, strict=True)}
    said.setdefault(blocks[-1].step + 1, block_terms(query.recent[0]).asked)
    return [said.get(block.step + 1, frozenset()) for block in blocks]


def _gains(
    need: Mapping[str, float],
    known: Sequence[BlockTerms],
    blocks: Sequence[CoveredBlock],
    following: Sequence[frozenset[str]],
    in_sight: frozenset[str],
) -> list[dict[str, float]]:
    """What each step explains of each needed term; what the agent itself said again in the recent blocks needs no step."""
    gains: list[dict[str, float]] = []
    for found, block, said in zip(known, blocks, following, strict=True):
        detail = block.detail.lower()
        brought = found.answered - found.asked
        used = bool(brought & said)
        said_again = bool(brought & in_sight)
        gain: dict[str, float] = {}
        for term, weight in need.items():
            if said_again and term in in_sight:
                continue
            if term in found.answered and term in found.asked:
                gain[term] = weight * (ASKED_AND_ANSWERED if used and term in said else ASKED_AND_ANSWERED * UNUSED)
            elif term in found.answered:
                gain[term] = weight * ANSWERED
            elif term in found.asked:
                gain[term] = weight * (CALLED if term in found.called else ASKED)
            elif term in detail:
                gain[term] = weight * DETAIL
        gains.append(gain)
    return gains


def _greedy(gains: Sequence[Mapping[str, float]], likes: Sequence[float]) -> list[int]:
    """Places of the chosen steps: each explains some term well enough, and better than those before it."""
    chosen: list[int] = []
    explained: dict[str, float] = {}
    first = 0.0
    while len(chosen) < MOST_STEPS:
        beyond = [max((gain - explained.get(term, 0.0) for term, gain in step.items()), default=0.0) for step in gains]
        best = max(range(len(gains)), key=lambda place: (round(beyond[place] + likes[place], 9) if beyond[place] > 0 else 0.0, place))
        if beyond[best] < max(LEAST_GAIN, LEAST_SHARE * first):
            return chosen
        first = first or beyond[best]
        chosen.append(best)
        for term, gain in gains[best].items():
            explained[term] = max(explained.get(term, 0.0), gain)
    return chosen


def _answer(steps: Sequence[int], owners: Mapping[int, str], goal: str) -> dict[str, object]:
    summaries = sorted({owners[step] for step in steps})
    return {"summary_ids": summaries, "raw_steps_needed": list(steps), "goal": goal}
