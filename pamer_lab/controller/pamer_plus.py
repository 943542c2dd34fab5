"""PaMER+: restores only the steps that are needed, instead of complete summaries; each is checked, and every selection is recorded.

A `Recaller`: router, Algorithm 2, cache and recall agent, in this order. Invariant: only blocks that a valid selection names enter the
request (with `pamer+:router=archive` the router also reads others, to choose among them); evidence is in the archive word for word; a
refused selection or packet is recorded with its reason and returns the original request; an empty selection and a declined recall inject
nothing and are not failures; a failing recorder leaves the request as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from pamer_lab.blocks import TokenCounter
from pamer_lab.controller.plan import Plan
from pamer_lab.controller.recall import Entry, Recalled
from pamer_lab.controller.recall_agent import CacheOutcome, Packet, RecallAgent, RecallCache, checked
from pamer_lab.controller.request import read_message
from pamer_lab.controller.router import (
    CANDIDATES_KEPT,
    Candidate,
    NoRecorder,
    Recorder,
    Router,
    RouterQuery,
    Routing,
    SelectionOutcome,
    SelectionRecord,
)
from pamer_lab.controller.selection import Selection, evidence, select
from pamer_lab.decisions import Spent, charge, charging
from pamer_lab.errors import StorageError
from pamer_lab.memory import CoveredBlock, Memories
from pamer_lab.memory.records import unpack
from pamer_lab.trajectory.values import Message

NEAR_MISSES = 3
ANSWER_CHARACTERS = 2_000
"""Maximum number of characters of a router's answer in the record."""
COMPLETE, EXCERPT = "as it was then", "an excerpt of what it was then"
"""What a restored entry is called: a model must not take an excerpt for the complete step."""


@dataclass
class _Attempt:
    """What is known of the current selection; becomes the record."""

    routing: Routing = field(default_factory=lambda: Routing(None))
    selection: Selection | None = None
    cache: CacheOutcome | None = None
    packet: Packet | None = None
    spent: list[Spent] = field(default_factory=list)
    """Cost of router and agent, including refused answers."""
    restored_tokens: int = 0
    present: bool = False
    """Whether everything chosen is already in the request."""


class StepRecaller:
    """Restores the steps that a router names."""

    def __init__(
        self,
        store: Memories,
        router: Router,
        agent: RecallAgent,
        counter: TokenCounter,
        *,
        query_characters: int,
        recorder: Recorder | None = None,
    ) -> None:
        self._store = store
        self._router = router
        self._agent = agent
        self._counter = counter
        self._query_characters = query_characters
        self._recorder = recorder or NoRecorder()
        self._cache = RecallCache()

    def recall(self, plan: Plan) -> Recalled:
        attempt = _Attempt()
        try:
            found = self._recall(plan, attempt)
        except Exception as error:
            if failed := self._record(plan, attempt, "refused", f"{type(error).__name__}: {error}"):
                error.add_note(failed)
            charge(error, attempt.spent)
            raise
        outcome: SelectionOutcome = "accepted" if found.entries else "declined" if attempt.packet else "empty"
        outcome = "present" if attempt.present else outcome
        return replace(found, error=self._record(plan, attempt, outcome, found.reason))

    def _recall(self, plan: Plan, attempt: _Attempt) -> Recalled:
        request = plan.request
        recent = tuple(tuple(request.blocks[number].of(request.messages)) for number in plan.recent)
        with charging("router", self._router.name, attempt.spent):
            attempt.routing = self._router.route(RouterQuery(request.task, recent, plan.memory))
        attempt.spent.extend(attempt.routing.spent)
        selection = attempt.selection = select(plan.memory, attempt.routing.answer)
        if not selection.blocks:
            attempt.cache = "empty_selection"
            return Recalled((), "the router needs no earlier step", spent=tuple(attempt.spent))
        selection = self._new(plan, selection)
        if not selection.blocks:
            attempt.present = True
            said = f"the {len(attempt.selection.blocks)} chosen steps are in the context already"
            return Recalled((), said, spent=tuple(attempt.spent))
        attempt.selection = selection
        packet = attempt.packet = self._packet(plan, selection, attempt)
        if not packet.citations:
            return Recalled((), f"nothing in the {len(selection.steps)} chosen steps helps", spent=tuple(attempt.spent))
        owner = {block.step: memory for memory in selection.memories for block in memory.blocks}
        entries = tuple(
            Entry(
                f"{owner[citation.step].memory_id} step {citation.step:06d}",
                citation.text,
                EXCERPT if citation.step in packet.in_part else COMPLETE,
            )
            for citation in packet.citations
        )
        attempt.restored_tokens = restored_tokens(selection, packet, self._counter)
        chosen = tuple({owner[step].memory_id: owner[step] for step in packet.steps}.values())
        return Recalled(
            entries,
            _reason(selection, packet, attempt.restored_tokens),
            memories=chosen,
            restored=packet.steps,
            restored_in_part=packet.in_part,
            kind="evidence",
            spent=tuple(attempt.spent),
        )

    def _new(self, plan: Plan, selection: Selection) -> Selection:
        """The selection without the steps that stay in the request from earlier turns."""
        if not plan.shown_steps:
            return selection
        blocks = tuple(block for block in selection.blocks if block.step not in plan.shown_steps)
        left = {block.step for block in blocks}
        memories = tuple(memory for memory in selection.memories if left & set(memory.steps))
        return replace(selection, memories=memories, blocks=blocks)

    def _packet(self, plan: Plan, selection: Selection, attempt: _Attempt) -> Packet:
        """The cached packet for this selection, or a new one from the agent."""
        session_id = plan.memory.session_id
        attempt.cache, kept = self._cache.look(session_id, selection, self._agent.name)
        if kept is not None:
            return kept
        blocks = evidence(selection, self._store.raw_blocks([block.raw_hash for block in selection.blocks]))
        looked, attempt.cache = attempt.cache, "invalid_packet"
        with charging("recall", self._agent.name, attempt.spent):
            packet = self._agent.recall(plan.request.task, selection.goal, blocks)
        attempt.spent.extend(getattr(packet, "spent", ()))  # whatever an agent answers, `checked` looks at it next
        packet = checked(packet, blocks)
        attempt.cache = looked
        self._cache.keep(session_id, selection, self._agent.name, packet)
        return packet

    def _record(self, plan: Plan, attempt: _Attempt, outcome: SelectionOutcome, reason: str) -> str:
        """Record the selection; returns an error message if that fails, else an empty string."""
        try:
            self._recorder.record(self._selection_record(plan, attempt, outcome, reason))
        except Exception as error:  # whatever is wrong with the store, the agent's request must not suffer from it
            return f"the selection was not recorded ({type(error).__name__}: {' '.join(str(error).split())})"
        return ""

    def _selection_record(self, plan: Plan, attempt: _Attempt, outcome: SelectionOutcome, reason: str) -> SelectionRecord:
        selection, candidates = attempt.selection, attempt.routing.candidates
        steps = selection.steps if selection else ()
        return SelectionRecord(
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
            restored_tokens=attempt.restored_tokens if outcome == "accepted" else 0,
            restored_in_part=attempt.packet.in_part if attempt.packet else (),
        )


def restored_tokens(selection: Selection, packet: Packet, counter: TokenCounter) -> int:
    """Tokens of the restored text: for a complete block its own count, for an excerpt the count of what is quoted."""
    excerpts = [citation for citation in packet.citations if citation.step in packet.in_part]
    quoted: dict[int, int] = {}
    for citation, size in zip(excerpts, counter.count([citation.text for citation in excerpts]), strict=True):
        quoted[citation.step] = quoted.get(citation.step, 0) + size
    return sum(min(quoted.get(block.step, block.tokens), block.tokens) for block in selection.blocks if block.step in packet.steps)


def _reason(selection: Selection, packet: Packet, restored: int) -> str:
    archived = sum(len(memory.blocks) for memory in selection.memories)
    part = f" ({len(packet.in_part)} in part)" if packet.in_part else ""
    chosen = f" of {selection.tokens:,} chosen" if restored != selection.tokens else ""
    return f"restored {len(packet.steps)} of {archived} archived steps{part}, {restored:,}{chosen} of {selection.covered_tokens:,} tokens"


def near_misses(candidates: Sequence[Candidate], chosen: Sequence[int]) -> tuple[Candidate, ...]:
    """The best candidates that were not chosen."""
    return tuple(candidate for candidate in candidates if candidate.step not in chosen)[:NEAR_MISSES]


def shown(answer: Any) -> str:
    """A router's answer, of whatever type, as shortened text."""
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
