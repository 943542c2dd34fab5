"""The router without a model: which earlier steps mention what the newest result just brought up?

The need is the weighted names and identifiers of the recent blocks (`_need`). Steps are chosen greedily for what each explains beyond the
earlier choices (`_gains`, `_greedy`), plus a few steps whose answers the agent used very often (`_standing`); there may be none.
A `StepSource` decides what is visible of a step: its index entry or its raw block. Deterministic.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from heapq import nlargest

import numpy as np
import numpy.typing as npt

from pamer_lab.bounded import Bounded
from pamer_lab.controller.router import CANDIDATES_KEPT, Candidate, RouterQuery, Routing
from pamer_lab.controller.router_index import BlockTerms, IndexSource, StepIndex, StepSource, block_terms, superseded
from pamer_lab.memory.summary import block_text
from pamer_lab.memory.terms import terms
from pamer_lab.models.embedder import Embedder

NEW_IN_RESULT, NEW_IN_WORDS, KNOWN, IN_TASK = 1.0, 0.4, 0.1, 0.05
"""How much a term is needed: first mentioned by the newest result; by the agent's newest message; already dealt with in the
recent blocks; only in the task."""
ASKED_AND_ANSWERED, CALLED, ANSWERED, ASKED, DETAIL = 1.0, 0.6, 0.3, 0.2, 0.3
"""How well a step explains a term: the agent asked for it and the answer names it; its call names it and the answer does not (a
file rarely says its own path); only the answer; only the agent's words; only the step's detail line."""
SUPERSEDED = 0.3
"""How much a term is needed if the newest result mentions it before leading on to something unseen."""
UNUSED = 0.8
"""Factor on an answer's worth if the agent's next message uses nothing from it."""
RARITY = 0.5
"""Part of a term's weight that decreases with the number of steps that mention it."""
LIKENESS = 0.15
"""Weight of the embeddings' cosine relative to the terms."""
LATER = 0.05
"""Maximum bonus for later steps, which knew more; decides between otherwise equal ones."""
LEAST_GAIN = 0.4
"""Minimum that a step must explain to be chosen, in units of one term that a single step explains fully."""
LEAST_SHARE = 0.5
"""Each further step must explain at least this share of what the first one did."""
MOST_STEPS = 6
STANDING_STEPS = 4
"""Maximum number of steps restored without a cue: those whose answers the agent used most often."""
OFTEN = 4
"""Number of later steps that must have used an answer for that."""
KEPT = 40_000
"""Number of texts whose vectors are cached: two per step."""
INDEXES_KEPT = 64
"""Number of sessions whose index is cached."""

Gains = dict[int, dict[str, float]]
"""Place of a step -> what it explains of each needed term; a step that explains nothing is not in it."""


class EmbeddedRouter:
    """Deterministic, local, no language model."""

    def __init__(self, embedder: Embedder, source: StepSource | None = None) -> None:
        self._embedder = embedder
        self._source = source or IndexSource()
        self.name = f"embedded-3 {self._source.name}"
        self._vectors: Bounded[str, npt.NDArray[np.float32]] = Bounded(KEPT)
        self._indexes: Bounded[str, StepIndex] = Bounded(INDEXES_KEPT)

    def route(self, query: RouterQuery) -> Routing:
        if not query.recent or not any(memory.blocks for memory in query.memory.memories):
            return Routing(_answer([], {}, ""))
        index = self._index(query)
        recent = [block_terms(messages) for messages in query.recent]
        need = _need(query, recent, index)
        gains = _gains(need, index, recent)
        places = np.arange(len(index.blocks))
        likes = LIKENESS * index.likeness(self._embedder.embed([block_text(query.recent[-1])])[0])
        later = LATER * places / len(places)
        explained = np.zeros(len(places))
        for place, gain in gains.items():
            explained[place] = sum(gain.values())
        scores = explained + likes + later
        chosen = _greedy(gains, (likes + later).tolist())
        chosen += _standing(index, chosen)
        best = np.argsort(-scores, kind="stable")[:CANDIDATES_KEPT].tolist()
        candidates = tuple(
            Candidate(index.owners[place], index.blocks[place].step, round(float(scores[place]), 6), rank)
            for rank, place in enumerate(best, 1)
        )
        owners = {index.blocks[place].step: index.owners[place] for place in chosen}
        reasons = sorted({term for place in chosen for term, gain in gains.get(place, {}).items() if gain > 0})
        return Routing(_answer(sorted(owners), owners, ", ".join(reasons[:5])), candidates)

    def _index(self, query: RouterQuery) -> StepIndex:
        """The session's steps; only those of memories that are new since the last request are read."""
        memory = query.memory
        index = self._indexes.pop(memory.session_id, None)
        if index is None or not index.begins(memory.memories):
            index = StepIndex(terms(query.task))
        for entry in memory.memories[len(index.memories) :]:
            steps = self._source.steps(entry)
            index.add(
                entry,
                [step.terms for step in steps],
                self._embedded([step.text for step in steps]),
                self._embedded([block.detail for block in entry.blocks]),
            )
        self._indexes[memory.session_id] = index
        return index

    def _embedded(self, texts: Sequence[str]) -> list[npt.NDArray[np.float32]]:
        """One vector per text; only texts that are not cached are embedded."""
        named = {sha256(text.encode("utf-8", "surrogatepass")).hexdigest(): text for text in texts}
        vectors = self._vectors.many(list(named), lambda missing: self._embedder.embed([named[key] for key in missing]))
        found = dict(zip(named.values(), vectors, strict=True))
        return [found[text] for text in texts]


def _need(query: RouterQuery, recent: Sequence[BlockTerms], index: StepIndex) -> dict[str, float]:
    """Term -> how much it is needed, times how informative it is, for terms that some earlier step mentions.

    Terms that the newest result brings up weigh most, unless the agent is already after them or the result leads on to something unseen.
    """
    *older, newest = recent
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
    for term in superseded(query.recent[-1], index.looked_at):
        kinds[term] = min(kinds.get(term, 0.0), SUPERSEDED)
    steps = len(index.blocks)
    scale = math.log(1 + steps)
    return {
        term: kind * (RARITY * math.log((1 + steps) / len(speaking)) / scale + 1 - RARITY)
        for term, kind in kinds.items()
        if (speaking := index.speaking.get(term) or list(index.detailed(term)))
    }


def _gains(need: Mapping[str, float], index: StepIndex, recent: Sequence[BlockTerms]) -> Gains:
    """What each step explains of each needed term; an answer that the agent itself repeated in the recent blocks needs no step."""
    in_sight = frozenset().union(*(block.asked for block in recent))
    gains: Gains = {}
    for term, weight in need.items():
        for place in {*index.speaking.get(term, ()), *index.detailed(term)}:
            if term in in_sight and not index.brought[place].isdisjoint(in_sight):
                continue
            gains.setdefault(place, {})[term] = weight * _worth(term, place, index, recent[0].asked)
    return gains


def _worth(term: str, place: int, index: StepIndex, next_said: frozenset[str]) -> float:
    """How well a step explains a term: best if the agent asked for it, the answer names it, and the next message used that answer."""
    found = index.terms[place]
    if term in found.answered and term in found.asked:
        after = index.blocks[place].step + 1
        said = index.said.get(after, next_said if after == index.blocks[-1].step + 1 else frozenset())
        used = term in said and not index.brought[place].isdisjoint(said)
        return ASKED_AND_ANSWERED if used else ASKED_AND_ANSWERED * UNUSED
    if term in found.answered:
        return ANSWERED
    if term in found.asked:
        return CALLED if term in found.called else ASKED
    return DETAIL


def _greedy(gains: Gains, likes: Sequence[float]) -> list[int]:
    """Places of the chosen steps: each explains some term well enough, and better than those before it.

    The likeness of embeddings decides between steps that explain the same.
    """
    chosen: list[int] = []
    explained: dict[str, float] = {}
    first = 0.0
    while gains and len(chosen) < MOST_STEPS:
        beyond = {place: max(gain - explained.get(term, 0.0) for term, gain in step.items()) for place, step in gains.items()}
        best = max(gains, key=lambda place: (round(beyond[place] + likes[place], 9) if beyond[place] > 0 else 0.0, place))
        if beyond[best] < max(LEAST_GAIN, LEAST_SHARE * first):
            return chosen
        first = first or beyond[best]
        chosen.append(best)
        for term, gain in gains[best].items():
            explained[term] = max(explained.get(term, 0.0), gain)
    return chosen


def _standing(index: StepIndex, chosen: Sequence[int]) -> list[int]:
    """Places of further steps, whose answers the agent used most often: it may return to a record or file that nothing just named."""
    often = [place for place, count in index.used.items() if count >= OFTEN and place not in chosen]
    return nlargest(min(STANDING_STEPS, MOST_STEPS - len(chosen)), often, key=lambda place: (index.used[place], place))


def _answer(steps: Sequence[int], owners: Mapping[int, str], goal: str) -> dict[str, object]:
    summaries = sorted({owners[step] for step in steps})
    return {"summary_ids": summaries, "raw_steps_needed": list(steps), "goal": goal}
