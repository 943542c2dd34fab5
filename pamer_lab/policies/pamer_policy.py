"""What the PaMER policies and those with their memory share: a `PamerController` at work on a recorded trace.

The controller gets the recorded history as an agent would send it and does not know that this is a replay. Its decision is the
policy's, plus what local work took. Beside what the controller asked for, logits are read at
every turn that has an older block (`logits=all`), because what-if needs them where another setting would have asked;
`logits=asked` leaves that out.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from msgspec.structs import replace
from pydantic import ValidationError

from pamer_lab.blocks import recent_start
from pamer_lab.controller import ControllerSettings, PamerController, RequestDecision, Votes, as_chat
from pamer_lab.controller.gate import Gate
from pamer_lab.controller.probe import Probe, ReadingProbe
from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.request import AppendOnly
from pamer_lab.controller.trigger import Moment, Trigger
from pamer_lab.decisions import Decision, Item, Span, Spent, blocks_of, spans_of
from pamer_lab.errors import Cancelled, InputError, LabError
from pamer_lab.features.values import Cancel, OnProgress, Request
from pamer_lab.looks import LineLook
from pamer_lab.memory import DetailWriter, SourceBlock, Summary
from pamer_lab.policies.interface import Coming, Family, History, Need, Offered, PolicySession, Resources, summary_spent
from pamer_lab.prices import DEFAULT, PACKAGED_NAMES, find_prices

logger = logging.getLogger(__name__)

Inject = Literal["front", "append"]
"""`front`: between prefix and blocks. `append`: after the newest block."""
Recalls = Literal["summaries", "steps", ""]
"""What comes back from memory: whole summaries, chosen raw steps, or nothing."""


class ControlledPolicy:
    """A policy around the controller: its memory and recall; a subclass says when to compress and has the parameters."""

    title: ClassVar[str]
    family: ClassVar[Family] = "pamer"
    acts_live: ClassVar[bool] = True
    recalls: ClassVar[Recalls] = "summaries"
    removes: ClassVar[bool] = True
    """Blocks that became a memory leave the context."""
    minimum: int
    retained: int

    @property
    def name(self) -> str:
        """The title and every parameter that is not at its default."""
        ordered = sorted(fields(self), key=lambda field: bool(field.kw_only))  # type: ignore[arg-type]
        given = ((field.name, field.default, getattr(self, field.name)) for field in ordered)
        return self.title + "".join(f":{key}={value}" for key, default, value in given if value != default)

    @property
    def injects(self) -> Inject:
        """Where recalled memory goes."""
        return "front"

    @property
    def asks_chat(self) -> bool:
        """Whether the chat model is asked before memory is searched."""
        return False

    @property
    def reads_all(self) -> bool:
        """Whether logits are also read at turns where the controller does not ask for them."""
        return False

    def controller_settings(self, resources: Resources) -> ControllerSettings:
        raise NotImplementedError(type(self).__name__)

    def decider(self, resources: Resources) -> Probe | Trigger:
        """What decides on compression."""
        raise NotImplementedError(type(self).__name__)

    def wanted(self, decision: Decision, moment: Moment) -> bool:
        """Whether a compression was asked for at a turn that has enough to compress."""
        raise NotImplementedError(type(self).__name__)

    def failed(self, decision: Decision, moment: Moment) -> bool:
        """Whether a compression was asked for at this turn and failed."""
        return decision.action == "fallback" and 0 < decision.candidate_tokens >= self.minimum and self.wanted(decision, moment)

    def price_gate(self) -> Gate | None:
        """What edits must pay under; None: nothing."""
        return None

    def recaller(self, resources: Resources) -> Recaller | None:
        """What finds memory; None takes the controller's own top summaries."""
        return None

    def details(self, resources: Resources) -> DetailWriter | None:
        """What writes step details; None takes the summariser's own, by a rule."""
        return None

    def start(self, resources: Resources) -> PolicySession:
        return PamerSession(self, resources)


@dataclass(frozen=True)
class PamerPolicy(ControlledPolicy):
    """Parameters of all PaMER policies; the defaults are the paper's."""

    needs_models: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = ("heads", "embedder", "summariser")
    look: ClassVar[LineLook] = LineLook("purple", "longdash", width=2.5)
    offered: ClassVar[Offered] = "also"

    vote: int = field(default=3, metadata={"least": 1})
    """Heads that must agree, of five."""
    minimum: int = 1024
    """Least tokens of a compression candidate."""
    retained: int = 2
    """Newest complete blocks that are never compressed."""
    top: int = field(default=3, metadata={"least": 1})
    """Summaries recalled at most."""
    logits: str = field(default="all", metadata={"choices": ("all", "asked")})
    """At which turns logits are read: all with an older block, or only where the controller asks."""

    @property
    def reads_all(self) -> bool:
        return self.logits == "all"

    def settings(self, resources: Resources) -> dict[str, Any]:
        controller = self.controller_settings(resources).model_dump(exclude={"inject"} if self.injects == "front" else None)
        rule: dict[str, Any] = {"retained": self.retained, "vote": self.vote, "minimum": self.minimum, "top": self.top}
        rule |= {"recalls": self.recalls, "compresses": True}
        # Only what differs from the paper's layout, so that its runs keep their ids.
        rule |= {"inject": self.injects} if self.injects != "front" else {}
        rule |= {"gate": gate.as_settings()} if (gate := self.price_gate()) else {}
        voting = {key: value for key, value in resources.heads_identity().items() if key in ("sha256", "hint")}
        own = {"controller": controller, "rule": rule if self.removes else None, "logits": self.logits, "heads": voting}
        return own | resources.identity()

    def controller_settings(self, resources: Resources) -> ControllerSettings:
        given = resources.settings.model_dump()
        given |= {"vote": self.vote, "minimum_candidate_tokens": self.minimum, "retained_blocks": self.retained}
        try:
            return ControllerSettings(**given | {"top_k": self.top, "recall": bool(self.recalls), "inject": self.injects})
        except ValidationError as error:
            said = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
            raise InputError(f"policy {self.name!r}: {said}") from error

    def decider(self, resources: Resources) -> Probe:
        return resources.probe

    def wanted(self, decision: Decision, moment: Moment) -> bool:
        return sum(decision.votes) >= self.vote

    def read_ahead(self, coming: Coming, resources: Resources, progress: OnProgress | None, cancel: Cancel | None) -> None:
        """Compute the states of every turn at which the heads will be read, where those are known (`logits=all`)."""
        probe = resources.probe
        if not self.reads_all or not isinstance(probe, ReadingProbe):
            return
        first = next((block.index for block in coming.blocks if block.complete), len(coming.blocks))
        points = [t for t in coming.points if first < recent_start(coming.blocks[:t], self.retained)]
        context = f"recent{self.retained}" if self.retained else "current"
        try:
            probe.read_ahead(Request(coming.messages, coming.tools, points, context), progress, cancel)
        except Cancelled:
            raise
        except Exception as error:  # each turn then asks for its own state, and its decision says what went wrong
            logger.warning("states could not be read ahead: %s", error)


@dataclass(frozen=True)
class CachedPamerPolicy(PamerPolicy):
    """What `pamer` and `pamer+` can do for a prompt cache; the defaults are the paper's."""

    inject: str = field(default="front", metadata={"choices": ("front", "append")})
    """Where recalled memory goes: between prefix and blocks, chosen again each time; or after the newest block, once until the next
    compression."""
    gate: str = field(default="heads", metadata={"choices": ("heads", "priced")})
    """What decides on compression: the heads' vote; or that vote, where the edit also pays."""
    horizon: int = 20
    """For `gate=priced`: turns within which an edit must pay back."""
    prices: str = field(default=DEFAULT, metadata={"choices": PACKAGED_NAMES})
    """For `gate=priced`: the price table."""
    window: int = 128_000
    """For `gate=priced`: tokens the model takes; 0 means that no limit is known."""

    @property
    def injects(self) -> Inject:
        return "append" if self.inject == "append" else "front"

    def price_gate(self) -> Gate | None:
        return Gate.of(find_prices(self.prices), horizon=self.horizon, window=self.window) if self.gate == "priced" else None


class PamerSession:
    """One trace under the controller."""

    def __init__(self, policy: ControlledPolicy, resources: Resources) -> None:
        self.policy, self.resources = policy, resources
        self.settings = policy.controller_settings(resources)
        self._controller: PamerController | None = None
        self._chat = AppendOnly()
        self._stored: tuple[Span, ...] = ()
        self._before: tuple[Decision, ...] = ()
        """What was decided when this session was taken up."""
        self._items: tuple[Item, ...] = ()
        """The last request when this session was taken up, unless it was a fallback."""

    def controller(self, history: History) -> PamerController:
        """Made at the first turn: a run that is complete needs no model."""
        if self._controller is None:
            given = self.resources
            self._controller = PamerController(
                given.memory,
                given.embedder,
                given.summariser,
                self.policy.decider(given),
                given.tokens,
                self.settings,
                recaller=self.policy.recaller(given),
                details=self.policy.details(given),
                gate=self.policy.price_gate(),
            )
            self._controller.failed_before(given.session_id, self._failures(history))
            self._controller.continue_with(given.session_id, self._items)
        return self._controller

    def resume(self, decisions: Sequence[Decision]) -> None:
        written = [decision for decision in decisions if decision.stored]
        self._stored = written[-1].stored if written else ()
        self._before, self._controller = tuple(decisions), None
        self._items = next((decision.items for decision in reversed(decisions) if decision.action != "fallback"), ())
        memory, session = self.resources.memory, self.resources.session_id
        memory.forget_from(session, len({decision.stored for decision in written}))
        if spans_of(sorted(step for entry in memory.load(session).memories for step in entry.steps)) != self._stored:
            raise LabError(f"the memories of run {session} do not match its turns; replay it from the start (--fresh)")

    def _failures(self, history: History) -> int:
        """Failed compressions, less later successes, when this session was taken up."""
        count = 0
        for t, decision in enumerate(self._before):
            # A turn that stored a memory names it and compresses, or passes where the raw blocks stay.
            stored = decision.memory_ids and decision.action in ("pass", "compress")
            count = count + 1 if self.policy.failed(decision, self._moment(history, t, decision)) else max(0, count - bool(stored))
        return count

    def _moment(self, history: History, t: int, decision: Decision) -> Moment:
        """What a trigger knew at an earlier turn, or knows now."""
        context = history.tools_tokens + history.prefix_tokens + history.cumulative[t] - history.tokens(decision.stored)
        return Moment(self.resources.session_id, t, decision.candidate_tokens, context)

    def turn(self, history: History) -> Decision:
        self._chat += [as_chat(message) for message in history.messages[len(self._chat) :]]
        tools = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}}
            for tool in history.tools
        ]
        _, decision = self.controller(history).transform(self.resources.session_id, self._chat, tools, idle=history.idle)
        # A turn at which memory cannot be read leaves what is stored as it is.
        self._stored = spans_of(sorted({*blocks_of(self._stored), *blocks_of(decision.stored)}))
        spent = [*self._recall(history, decision), *self._calls(history, decision)]
        votes = Votes(decision.logits, decision.thresholds) if decision.logits else self._unasked(history, decision)
        if votes is not None:
            decision = replace(decision, logits=votes.logits, thresholds=votes.thresholds, votes=votes.votes)
            spent.append(self._features(history))
        decision = replace(decision, stored=self._stored, spent=tuple(spent))
        return decision if self.policy.removes and decision.items else self._complete(history, decision)

    def _complete(self, history: History, decision: Decision) -> Decision:
        """The decision over a request from which no raw block leaves."""
        texts = [item for item in decision.items if item.text]
        items = (*history.head(), *texts, *history.raw([(0, history.t)]))
        if decision.action != "compress":
            return replace(decision, items=items)
        return replace(decision, items=items, action="pass", reason=f"{decision.reason}; the raw blocks stay")

    def _calls(self, history: History, decision: Decision) -> list[Spent]:
        """What language models took, or the rules in their place."""
        asked = [entry for entry in decision.spent if entry.calls]
        if decision.action != "compress":
            return asked
        memory = self.resources.memory.load(self.resources.session_id).by_id[decision.memory_ids[0]]
        if not any(entry.operation == "summary" for entry in asked):
            blocks = [SourceBlock(step, tuple(history.block_messages(step))) for step in memory.steps]
            asked.insert(0, summary_spent(Summary(memory.summary, ()), blocks, self.resources))
        return [*asked, Spent("embedding", memory.summary_tokens, model=memory.embedding_model, local=True)]

    def _recall(self, history: History, decision: RequestDecision) -> list[Spent]:
        """The embedding of the query, where memory was searched."""
        failed = self.policy.failed(decision, self._moment(history, history.t, decision))
        if decision.action == "compress" or failed or not decision.memories or not self.policy.recalls:
            return []
        if self.policy.asks_chat and decision.action != "recall":  # the gate stayed shut
            return []
        return [Spent("embedding", self._recent_tokens(history), model=self.resources.embedder.name, local=True)]

    def _unasked(self, history: History, decision: RequestDecision) -> Votes | None:
        """The heads' votes at a turn where the controller did not need them."""
        start = self._recent_start(history)
        older = any(block.complete for block in history.blocks[:start])
        if not self.policy.reads_all or not older or "probe" in decision.error or decision.action == "fallback":
            return None
        recent = history.messages[history.blocks[start].start :] if start < history.t else ()
        active = decision.tokens - sum(item.tokens for item in decision.items if item.text)
        try:
            messages = [*history.messages[: history.prefix_end], *recent]
            return self.resources.probe.vote(messages, history.tools, active).checked(self.settings.heads)
        except Exception:  # what-if then says that this turn has no logit; the decision itself did not need it
            return None

    def _features(self, history: History) -> Spent:
        limit = self.resources.profile.probe_limit
        tokens = history.tools_tokens + self._recent_tokens(history)
        return Spent("features", min(tokens, limit) if limit else tokens, model=self.resources.probe.name, local=True)

    def _recent_tokens(self, history: History) -> int:
        """Prefix and recent blocks: what the heads read and the recall query is made of."""
        return history.prefix_tokens + history.tokens([(self._recent_start(history), history.t)])

    def _recent_start(self, history: History) -> int:
        return recent_start(history.blocks, self.policy.retained)
