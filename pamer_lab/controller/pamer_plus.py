"""PaMER+: instead of whole summaries, only the steps that are needed come back, each checked and every selection kept.

A `Recaller`: router, Algorithm 2, cache and recall agent in this order. What always holds: no block leaves the archive that a
valid selection does not name; a refused selection or packet is recorded with its reason and returns the original request;
an empty selection and a declined recall inject nothing and are no failures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pamer_lab.controller.decision import Auxiliary, charge, charging
from pamer_lab.controller.injection import Entry
from pamer_lab.controller.plan import Plan
from pamer_lab.controller.recall import Recalled
from pamer_lab.controller.recall_agent import Packet, RecallAgent, checked
from pamer_lab.controller.recall_cache import CacheOutcome, RecallCache
from pamer_lab.controller.request import read_message
from pamer_lab.controller.router import CANDIDATES_KEPT, Candidate, Router, RouterQuery, Routing
from pamer_lab.controller.selection import Selection, evidence, select
from pamer_lab.controller.selection_record import NoRecorder, Recorder, SelectionOutcome, SelectionRecord
from pamer_lab.errors import StorageError
from pamer_lab.memory import CoveredBlock, Memories
from pamer_lab.memory.archive import unpack
from pamer_lab.trajectory.values import Message

NEAR_MISSES = 3
ANSWER_CHARACTERS = 2_000
"""How much of a router's answer is kept in the record."""


@dataclass
class _Attempt:
    """What is known of the selection in hand; becomes the record."""

    routing: Routing = field(default_factory=lambda: Routing(None))
    selection: Selection | None = None
    cache: CacheOutcome | None = None
    packet: Packet | None = None
    spent: list[Auxiliary] = field(default_factory=list)
    """What router and agent took, also for answers that were refused."""


class StepRecaller:
    """Restores the steps that a router names."""

    def __init__(
        self, store: Memories, router: Router, agent: RecallAgent, *, query_characters: int, recorder: Recorder | None = None
    ) -> None:
        self._store = store
        self._router = router
        self._agent = agent
        self._query_characters = query_characters
        self._recorder = recorder or NoRecorder()
        self._cache = RecallCache()

    def recall(self, plan: Plan) -> Recalled:
        attempt = _Attempt()
        try:
            found = self._recall(plan, attempt)
        except Exception as error:
            self._record(plan, attempt, "refused", f"{type(error).__name__}: {error}")
            charge(error, attempt.spent)
            raise
        outcome: SelectionOutcome = "accepted" if found.entries else "declined" if attempt.packet else "empty"
        self._record(plan, attempt, outcome, found.reason)
        return found

    def _recall(self, plan: Plan, attempt: _Attempt) -> Recalled:
        request = plan.request
        recent = tuple(tuple(request.blocks[number].of(request.messages)) for number in plan.recent)
        with charging("router", self._router.name, attempt.spent):
            attempt.routing = self._router.route(RouterQuery(request.task, recent, plan.memory))
        attempt.spent.extend(attempt.routing.auxiliary)
        selection = attempt.selection = select(plan.memory, attempt.routing.answer)
        if not selection.blocks:
            attempt.cache = "empty_selection"
            return Recalled((), "the router needs no earlier step", auxiliary=tuple(attempt.spent))
        packet = attempt.packet = self._packet(plan, selection, attempt)
        if not packet.citations:
            return Recalled((), f"nothing in the {len(selection.steps)} chosen steps helps", auxiliary=tuple(attempt.spent))
        owner = {block.step: memory for memory in selection.memories for block in memory.blocks}
        entries = tuple(
            Entry(f"{owner[citation.step].memory_id} step {citation.step:06d}", citation.text, "as it was then")
            for citation in packet.citations
        )
        reason = (
            f"restored {len(packet.steps)} of {sum(len(memory.blocks) for memory in selection.memories)} covered steps, "
            f"{selection.tokens:,} of {selection.covered_tokens:,} tokens"
        )
        chosen = tuple({owner[step].memory_id: owner[step] for step in packet.steps}.values())
        return Recalled(entries, reason, memories=chosen, restored=packet.steps, kind="evidence", auxiliary=tuple(attempt.spent))

    def _packet(self, plan: Plan, selection: Selection, attempt: _Attempt) -> Packet:
        """The kept packet for this selection, or a new one from the agent."""
        session_id = plan.memory.session_id
        attempt.cache, kept = self._cache.look(session_id, selection, self._agent.name)
        if kept is not None:
            return kept
        blocks = evidence(selection, self._store.raw_blocks([block.raw_hash for block in selection.blocks]))
        looked, attempt.cache = attempt.cache, "invalid_packet"
        with charging("recall", self._agent.name, attempt.spent):
            packet = self._agent.recall(plan.request.task, selection.goal, blocks)
        attempt.spent.extend(getattr(packet, "auxiliary", ()))  # whatever an agent answers, `checked` looks at it next
        packet = checked(packet, blocks)
        attempt.cache = looked
        self._cache.keep(session_id, selection, self._agent.name, packet)
        return packet

    def _record(self, plan: Plan, attempt: _Attempt, outcome: SelectionOutcome, reason: str) -> None:
        selection, candidates = attempt.selection, attempt.routing.candidates
        steps = selection.steps if selection else ()
        self._recorder.record(
            SelectionRecord(
                session_id=plan.memory.session_id,
                turn=len(plan.request.blocks),
                table_version=self._store.version,
                query=plan.query(self._query_characters),
                router=self._router.name,
                agent=self._agent.name,
                answer=shown(attempt.routing.answer),
                outcome=outcome,
                reason=reason,
                candidates=candidates[:CANDIDATES_KEPT],
                summary_ids=selection.memory_ids if selection else (),
                steps=steps,
                goal=selection.goal if selection else "",
                near_misses=near_misses(candidates, steps),
                cache=attempt.cache or "",
                cited_steps=attempt.packet.steps if attempt.packet else (),
                chosen_tokens=selection.tokens if selection else 0,
                covered_tokens=selection.covered_tokens if selection else 0,
            )
        )


def near_misses(candidates: Sequence[Candidate], chosen: Sequence[int]) -> tuple[Candidate, ...]:
    """The best candidates that were not chosen."""
    return tuple(candidate for candidate in candidates if candidate.step not in chosen)[:NEAR_MISSES]


def shown(answer: Any) -> str:
    """A router's answer as text, whatever it is, shortened."""
    try:
        text = orjson.dumps(answer).decode()
    except (TypeError, ValueError):
        text = repr(answer)
    return text.encode("utf-8", "replace").decode()[:ANSWER_CHARACTERS]


def archived_messages(store: Memories, blocks: Sequence[CoveredBlock]) -> Mapping[str, Sequence[Message]]:
    """Messages of covered blocks by raw hash, from the archive; for routers that look at raw blocks."""
    raw = store.raw_blocks([block.raw_hash for block in blocks])
    try:
        return {name: [read_message(item, name[:12]) for item in unpack(block)] for name, block in raw.items()}
    except ValueError as error:
        raise StorageError(f"an archived block cannot be read ({error})") from error
