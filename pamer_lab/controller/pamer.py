"""PaMER, Algorithm 1 of the paper: one request in, one request and its decision out.

`transform` takes the caller's complete, append-only history and returns the request to send.
Invariant: every block of the history is in the returned request or covered by exactly one stored memory; if a memory operation fails,
the caller's own list is returned unchanged; `transform` never raises. The caller creates and opens the store.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pamer_lab.blocks import MessageTokens
from pamer_lab.bounded import Bounded
from pamer_lab.controller import recall
from pamer_lab.controller.compression import Compressor
from pamer_lab.controller.gate import Gate
from pamer_lab.controller.plan import Plan, plan
from pamer_lab.controller.probe import Probe
from pamer_lab.controller.recall import Recalled, Recaller, TopSummaries
from pamer_lab.controller.request import Appended, Chat, History, Request, appended_in
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.controller.trigger import Moment, Trigger
from pamer_lab.controller.turn import DecisionBuilder, RequestDecision
from pamer_lab.counts import counted
from pamer_lab.decisions import Item, ItemKind, charges_of, spans_of
from pamer_lab.errors import InputError, StorageError
from pamer_lab.memory import DetailWriter, LostRaceError, Memories, SessionMemory, Summariser
from pamer_lab.models.embedder import Embedder

SESSIONS_KEPT = 256
"""Number of sessions whose parsed history is kept in this process."""
NO_SESSION = "no session id"
"""The error of a request that names no session."""

Outcome = tuple[Sequence[Chat], RequestDecision]


class PamerController:
    """Decides, before each action of an agent, what the model still sees."""

    def __init__(
        self,
        store: Memories,
        embedder: Embedder,
        summariser: Summariser,
        probe: Probe | Trigger,
        tokens: MessageTokens,
        settings: ControllerSettings | None = None,
        *,
        recaller: Recaller | None = None,
        details: DetailWriter | None = None,
        gate: Gate | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`probe` decides on compression: heads that vote, or a trigger in their place. `gate`: compress only if the edit also pays
        off; None: whenever the heads vote for it. `clock`: in seconds, measures how long a session is idle."""
        self.settings = settings or ControllerSettings()
        self.store = store
        self._probe = probe
        self._tokens = tokens
        self._injected = recall.InjectionTokens(tokens)
        self._recaller = recaller or TopSummaries(embedder, k=self.settings.top_k, query_characters=self.settings.query_characters)
        limit = self.settings.summary_tokens
        self._compressor = Compressor(store, summariser, embedder, tokens.counter, summary_tokens=limit, details=details)
        self._sessions: Bounded[str, _Session] = Bounded(SESSIONS_KEPT)
        self._lock = threading.Lock()
        self._gate, self._clock = gate, clock

    def transform(
        self, session_id: str, messages: Sequence[Chat], tools: Sequence[Any] | None = None, *, idle: float | None = None
    ) -> Outcome:
        """The request to send instead of `messages`, and why.

        `session_id`: names the agent's run; its memories are stored under it.
        `messages`: the complete history so far, in OpenAI's chat form; only ever appended to.
        `tools`: the tool descriptions that go with the request, which count as part of it.
        `idle`: seconds since the session's last request, for the priced gate; None: measured here.
        """
        turn = DecisionBuilder(session_id if isinstance(session_id, str) else "", self._tokens.counter.name)
        try:
            if not turn.session_id:
                return messages, turn.fallback("the request names no session", NO_SESSION)
            session = self._session(turn.session_id)
            with session.lock:
                turn.idle = session.idle(self._clock()) if idle is None else idle
                return self._transform(turn, session, messages, tools)
        except InputError as error:
            return messages, turn.fallback("the messages break the safe tool protocol", error.sentence)
        except Exception as error:  # whatever fails, the agent must get its own request back
            return messages, turn.fallback("a memory operation failed", _said(error))

    def continue_with(self, session_id: str, items: Sequence[Item]) -> None:
        """Continue a session whose last request consisted of these items: recalled memory after its blocks stays there."""
        self._session(session_id).appended = appended_in(items) if self.settings.inject == "append" else ()

    def failed_before(self, session_id: str, failures: int) -> None:
        """Continue a session with this number of failed compressions; replaces the count kept here."""
        self._session(session_id).failures = failures

    def _transform(self, turn: DecisionBuilder, session: "_Session", messages: Sequence[Chat], tools: Sequence[Any] | None) -> Outcome:
        with turn.stage("read"):
            request = turn.request = session.history.read(messages, tools)
        for _ in range(self.settings.race_attempts):
            with turn.stage("load"):
                memory = self._load(turn)
            session.appended = _still_there(session.appended, request, memory)
            shown = [entry.item for entry in session.appended]
            current = turn.plan = plan(request, memory, self.settings.retained_blocks, shown)
            try:
                if self._wants_compression(turn, current):
                    return self._compress(turn, current, session)
            except LostRaceError as error:
                turn.errors.append(str(error))
                continue
            if memory.memories and self.settings.recall:
                return self._recall(turn, current, session)
            return self._pass(turn, current, session)
        return messages, turn.fallback(f"other processes were first {self.settings.race_attempts} times", turn.errors[-1])

    def _load(self, turn: DecisionBuilder) -> SessionMemory:
        """The session's memory; one that cannot be read counts as empty, and the decision says so."""
        try:
            memory = self.store.load(turn.session_id)
        except StorageError as error:
            turn.errors.append(f"stored memory was discarded: {error}")
            return SessionMemory(turn.session_id, unreadable=True)
        turn.errors.extend(f"a stored memory was discarded: {reason}" for reason in memory.discarded)
        return memory

    def _wants_compression(self, turn: DecisionBuilder, current: Plan) -> bool:
        """Ask the heads or the trigger, if there is enough to compress; a failed probe means no."""
        settings = self.settings
        turn.votes = turn.verdict = None
        if not settings.compression or not current.old or current.candidate_tokens < settings.minimum_candidate_tokens:
            return False
        active = current.tokens(current.active)
        if isinstance(self._probe, Trigger):
            turn.verdict = self._probe.ask(Moment(turn.session_id, len(current.request.blocks), current.candidate_tokens, active))
            return turn.verdict.edit
        try:
            with turn.stage("probe"):
                turn.votes = self._probe.vote(current.probe_messages(), current.request.tools, active).checked(settings.heads)
        except Exception as error:  # a probe may fail in as many ways as a model and a device
            turn.errors.append(f"probe: {_said(error)}")
            return False
        if sum(turn.votes.votes) < settings.vote:
            return False
        if self._gate is None:
            return True
        behind = current.tokens(current.retained) - current.tokens(())
        tokens = active + current.shown_tokens
        sizes = {"removed": current.candidate_tokens, "behind": behind, "tokens": tokens, "appended": current.shown_tokens}
        turn.verdict = self._gate.ask(**sizes, idle=turn.idle)
        return turn.verdict.edit

    def _compress(self, turn: DecisionBuilder, current: Plan, session: "_Session") -> Outcome:
        chosen, failures = self._range(current, session.failures), session.failures
        try:
            done = self._compressor.compress(chosen, turn.stage, turn.spent)
        except LostRaceError:
            raise
        except Exception:
            session.failures += 1
            raise
        session.failures, session.appended = max(0, failures - 1), ()
        covered, votes = len(chosen.old), turn.votes
        said = [f"{sum(votes.votes)} of {len(votes.votes)} heads voted for it"] if votes else []
        said += [turn.verdict.reason] if turn.verdict else []
        blocks = f"{counted(covered, 'older block')} of {chosen.candidate_tokens:,} tokens"
        reason = f"{'; '.join(said)}: {blocks} became memory {done.memory.memory_id}"
        if chosen.waiting:
            reason += f"; {len(chosen.waiting)} newer ones wait, because compressing more failed"
        return done.messages, turn.decision(
            current,
            action="compress",
            reason=reason,
            memory_ids=(done.memory.memory_id,),
            items=chosen.request.items(chosen.retained),
            stored=chosen.left_out(chosen.retained),
        )

    def _range(self, current: Plan, failures: int) -> Plan:
        """What to compress: the complete candidate, or only its oldest part if that failed too often."""
        halvings = failures - self.settings.failures_before_shorter + 1
        return current.shortened(halvings) if halvings > 0 else current

    def _recall(self, turn: DecisionBuilder, current: Plan, session: "_Session") -> Outcome:
        append = self.settings.inject == "append"
        if append and not (current.active and current.request.blocks[current.active[-1]].complete):
            return self._pass(turn, current, session, Recalled((), "recall waits, because the newest block has an open call"))
        with turn.stage("recall"):
            found = self._found(turn, current)
        if found.error:
            turn.errors.append(found.error)
        if not found.entries:
            return self._pass(turn, current, session, found)
        added = recall.message(found.entries, found.kind)
        numbers, request = current.active, current.request
        size = self._injected.count(found.entries, found.kind)
        ids = tuple(sorted({memory.memory_id for memory in found.memories}))
        spans = spans_of(sorted(found.restored)) or current.covered_by(found.memories)
        kind: ItemKind = "evidence" if found.restored else "recalled"
        item = Item(kind, size, spans, " ".join(ids), added["content"], in_part=found.restored_in_part)
        newest = Appended(numbers[-1], request.block_ids[numbers[-1]], item, added) if append else None
        inserted, appended = ([], (*session.appended, newest)) if newest else ([added], ())
        messages = recall.checked(request.rebuilt(numbers, inserted, appended), request, numbers, inserted, appended)
        session.appended = appended
        return messages, turn.decision(
            current,
            action="recall",
            reason=f"{turn.not_compressed(current, self.settings)}; {found.reason}",
            memory_ids=ids,
            restored_steps=found.restored,
            items=request.items(numbers, [] if append else [item], appended),
            stored=current.left_out(numbers),
        )

    def _found(self, turn: DecisionBuilder, current: Plan) -> Recalled:
        """What the recaller finds; the cost of its calls is recorded even if it fails."""
        try:
            found = self._recaller.recall(current)
        except Exception as error:
            turn.spent.extend(charges_of(error))
            raise
        turn.spent.extend(found.spent)
        return found

    def _pass(self, turn: DecisionBuilder, current: Plan, session: "_Session", found: Recalled | None = None) -> Outcome:
        numbers, appended = current.active, session.appended
        messages = recall.checked(current.request.rebuilt(numbers, (), appended), current.request, numbers, (), appended)
        reason = turn.not_compressed(current, self.settings)
        if found:
            reason += f"; {found.reason}"
        elif current.memory.memories:
            reason += "; recall is switched off"
        return messages, turn.decision(
            current,
            action="pass",
            reason=reason,
            items=current.request.items(numbers, (), appended),
            stored=current.left_out(numbers),
        )

    def _session(self, session_id: str) -> "_Session":
        with self._lock:
            session = self._sessions.get(session_id) or _Session(History(self._tokens))
            self._sessions[session_id] = session
            return session


@dataclass
class _Session:
    """What this process knows about a session."""

    history: History
    failures: int = 0
    """Failed compressions minus later successes."""
    appended: tuple[Appended, ...] = ()
    """Recalled memory that stays after its blocks until the next compression."""
    last: float | None = None
    """Time of the last request."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def idle(self, now: float) -> float | None:
        """Seconds since the last request; None for the first one."""
        since = None if self.last is None else max(0.0, now - self.last)
        self.last = now
        return since


def _still_there(appended: tuple[Appended, ...], request: Request, memory: SessionMemory) -> tuple[Appended, ...]:
    """The appended memory if all of its blocks are still there; nothing if one was rewritten or has left the request."""
    names = request.block_ids
    there = all(
        entry.block < len(names) and entry.block_id in ("", names[entry.block]) and names[entry.block] not in memory.covered
        for entry in appended
    )
    return appended if there else ()


def _said(error: Exception) -> str:
    """An error's type and message on one line, with its notes."""
    text = " ".join(str(error).split())
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return "; ".join([said, *getattr(error, "__notes__", ())])
