"""One trace under a `PamerController`.

The controller gets the recorded history as an agent would send it and does not know that this is a replay. Its decision becomes the
policy's, with the cost of local work added. With `logits=all`, logits are also computed at turns with an older block where the controller
does not ask for them, because what-if needs them where another setting would have asked; `logits=asked` skips this.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pamer_lab.blocks import recent_start
from pamer_lab.controller import PamerController, RequestDecision, Votes, as_chat
from pamer_lab.controller.request import AppendOnly
from pamer_lab.controller.trigger import Moment
from pamer_lab.decisions import Decision, Item, Span, Spent, blocks_of, spans_of
from pamer_lab.errors import LabError
from pamer_lab.features.serialise import as_function
from pamer_lab.memory import SourceBlock, Summary
from pamer_lab.policies.interface import History, Resources, summary_spent

if TYPE_CHECKING:
    from pamer_lab.policies.pamer_policy import ControlledPolicy


class PamerSession:
    """One trace under the controller."""

    def __init__(self, policy: "ControlledPolicy", resources: Resources) -> None:
        self.policy, self.resources = policy, resources
        self.settings = policy.controller_settings(resources)
        self._controller: PamerController | None = None
        self._chat = AppendOnly()
        self._stored: tuple[Span, ...] = ()
        self._before: tuple[Decision, ...] = ()
        """Decisions made before this session was resumed."""
        self._items: tuple[Item, ...] = ()
        """The last request before this session was resumed that was not a fallback."""

    def controller(self, history: History) -> PamerController:
        """Created at the first turn: a complete run needs no model."""
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
        """Failed compressions minus later successes before this session was resumed."""
        count = 0
        for t, decision in enumerate(self._before):
            # A turn that stored a memory names it, and compresses or (if the raw blocks stay) passes.
            stored = decision.memory_ids and decision.action in ("pass", "compress")
            count = count + 1 if self.policy.failed(decision, self._moment(history, t, decision)) else max(0, count - bool(stored))
        return count

    def _moment(self, history: History, t: int, decision: Decision) -> Moment:
        """What a trigger knew at an earlier turn, or knows now."""
        context = history.tools_tokens + history.prefix_tokens + history.cumulative[t] - history.tokens(decision.stored)
        return Moment(self.resources.session_id, t, decision.candidate_tokens, context)

    def turn(self, history: History) -> Decision:
        self._chat += [as_chat(message) for message in history.messages[len(self._chat) :]]
        tools = [as_function(tool) for tool in history.tools]
        _, decision = self.controller(history).transform(self.resources.session_id, self._chat, tools, idle=history.idle)
        # If memory cannot be read at a turn, the stored blocks stay the same.
        self._stored = spans_of(sorted({*blocks_of(self._stored), *blocks_of(decision.stored)}))
        spent = [*self._recall(history, decision), *self._calls(history, decision)]
        votes = Votes(decision.logits, decision.thresholds) if decision.logits else self._unasked(history, decision)
        if votes is not None:
            decision = replace(decision, logits=votes.logits, thresholds=votes.thresholds, votes=votes.votes)
            spent.append(self._features(history))
        decision = replace(decision, stored=self._stored, spent=tuple(spent))
        return decision if self.policy.removes and decision.items else self._complete(history, decision)

    def _complete(self, history: History, decision: Decision) -> Decision:
        """The decision with a request that keeps all raw blocks."""
        texts = [item for item in decision.items if item.text]
        items = (*history.head(), *texts, *history.raw([(0, history.t)]))
        if decision.action != "compress":
            return replace(decision, items=items)
        return replace(decision, items=items, action="pass", reason=f"{decision.reason}; the raw blocks stay")

    def _calls(self, history: History, decision: Decision) -> list[Spent]:
        """The cost of language model calls, or of the rules in their place."""
        asked = [entry for entry in decision.spent if entry.calls]
        if decision.action != "compress":
            return asked
        memory = self.resources.memory.load(self.resources.session_id).by_id[decision.memory_ids[0]]
        if not any(entry.operation == "summary" for entry in asked):
            blocks = [SourceBlock(step, tuple(history.block_messages(step))) for step in memory.steps]
            asked.insert(0, summary_spent(Summary(memory.summary, ()), blocks, self.resources))
        return [*asked, Spent("embedding", memory.summary_tokens, model=memory.embedding_model, local=True)]

    def _recall(self, history: History, decision: RequestDecision) -> list[Spent]:
        """The cost of embedding the query, if memory was searched."""
        failed = self.policy.failed(decision, self._moment(history, history.t, decision))
        if decision.action == "compress" or failed or not decision.memories or not self.policy.recalls:
            return []
        if (self.policy.asks_chat or self.policy.reads_drafts) and decision.action != "recall":  # the gate stayed closed
            return []
        if self.policy.injects == "append" and history.blocks and not history.blocks[-1].complete:  # recall waits for the open call
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
        """Tokens of prefix and recent blocks: what the heads read, and what the recall query is made of."""
        return history.prefix_tokens + history.tokens([(self._recent_start(history), history.t)])

    def _recent_start(self, history: History) -> int:
        return recent_start(history.blocks, self.policy.retained)
