"""Gates before PaMER's recall: does the next action need memory at all? After FLARE, Self-RAG and Probing-RAG.

Off by default: the paper recalls at every request that does not compress. A gate that fails lets recall proceed, and the decision says so.
Invariant: a gate reads only what the request contains, and reports what it cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.controller.plan import Plan
from pamer_lab.controller.recall import Recalled, TopSummaries
from pamer_lab.decisions import Spent, charge
from pamer_lab.errors import InputError, LabError, ModelError
from pamer_lab.models.chat import Chat, ChatMessages
from pamer_lab.models.draft import draft, next_action
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.models.usage import usage_of
from pamer_lab.probes.draft_probe import FIT, DraftProbe
from pamer_lab.studies.drafts import DRAFT_CHARACTERS, drafted

GateKind = Literal["always", "flare", "self-rag", "probing-rag"]
"""`always`: no gate. `flare`: recall if a draft of the next action has an uncertain token. `self-rag`: if the chat model asks for it.
`probing-rag`: if a probe on the hidden states of the frozen model's own draft asks for it."""
GATE_FAILED = "the recall gate failed"
DRAFT_TOKENS = 64
"""FLARE's look-ahead in tokens."""
UNCERTAIN, MASKED = 0.8, 0.4
"""FLARE: memory is searched if a token of the draft has a probability below the first; those below the second are left out of the query."""


@dataclass(frozen=True)
class Opened:
    """A gate's answer."""

    recall: bool
    reason: str
    query: str = ""
    """The search query; empty: task and recent blocks, as without a gate."""
    spent: tuple[Spent, ...] = ()


class RecallGate(Protocol):
    """Decides whether a request needs memory."""

    name: str

    def ask(self, plan: Plan) -> Opened: ...


class GatedRecall:
    """A recaller that asks a gate first."""

    def __init__(self, gate: RecallGate, inner: TopSummaries) -> None:
        self._gate, self._inner = gate, inner

    def recall(self, plan: Plan) -> Recalled:
        try:
            said = self._gate.ask(plan)
        except LabError as error:
            usage = usage_of(error)
            spent = (Spent.of("gate", self._gate.name, usage),) if usage.calls else ()
            found = self._found(plan, "", spent)
            return replace(found, spent=(*spent, *found.spent), error=f"{GATE_FAILED}: {error}")
        if not said.recall:
            return Recalled((), said.reason, spent=said.spent)
        found = self._found(plan, said.query, said.spent)
        return replace(found, reason=f"{said.reason}; {found.reason}", spent=(*said.spent, *found.spent))

    def _found(self, plan: Plan, query: str, spent: tuple[Spent, ...]) -> Recalled:
        try:
            return self._inner.recall(plan, query)
        except Exception as error:
            charge(error, spent)
            raise


class FlareGate:
    """Recalls if a draft of the next action has a token that the model is not sure of."""

    def __init__(self, chat: Chat, characters: int) -> None:
        self._chat, self._characters = chat, characters
        self.name = f"flare, {chat.name}"

    def ask(self, plan: Plan) -> Opened:
        found = draft(self._chat, next_action(plan.query(self._characters)), DRAFT_TOKENS)
        spent = (Spent.of("gate", self._chat.name, found.usage),)
        least = min(found.probabilities, default=1.0)
        if least >= UNCERTAIN:
            return Opened(False, f"every token of the drafted action has a probability of at least {least:.2f}", spent=spent)
        kept = "".join(text for text, chance in zip(found.tokens, found.probabilities, strict=True) if chance >= MASKED)
        query = f"{plan.request.task}\n{kept.strip()}"[-self._characters :] if kept.strip() else ""
        return Opened(True, f"a token of the drafted action has a probability of {least:.2f}", query, spent)


class SelfRagGate:
    """Recalls if the chat model says that the next action needs something that is no longer shown."""

    def __init__(self, chat: Chat, characters: int) -> None:
        self._chat, self._characters = chat, characters
        self.name = f"self-rag, {chat.name}"

    def ask(self, plan: Plan) -> Opened:
        answer = self._chat.complete(_question(plan.query(self._characters)), max_tokens=ANSWER_TOKENS, schema=SCHEMA)
        found = answer.data()["retrieve"]
        if not isinstance(found, bool):
            raise ModelError(f"{self._chat.name} answered {found!r}, neither true nor false")
        said = "the model asks for memory" if found else "the model asks for no memory"
        return Opened(found, said, spent=(Spent.of("gate", self._chat.name, answer.usage),))


class ProbingRagGate:
    """Recalls if a probe on the hidden states of the frozen model's draft says that memory is needed."""

    def __init__(self, model: FrozenModel, probe: DraftProbe) -> None:
        if (probe.fingerprint, len(probe.weights[0])) != (model.fingerprint, model.width):
            raise InputError(f"the probe for drafts of {probe.model} was fitted on other weights; fit it again: {FIT}")
        self._model, self._probe = model, probe
        self.name = f"probing-rag, {model.name}"

    def ask(self, plan: Plan) -> Opened:
        states, usage = drafted(self._model, plan.query(DRAFT_CHARACTERS), self._probe.layers)
        margin = self._probe.margin(states)
        spent = Spent("gate", usage.input_tokens, usage.output_tokens, self._model.name, local=True)
        wanted = margin > 0
        said = "asks" if wanted else "does not ask"
        return Opened(wanted, f"the probe on a draft of {usage.output_tokens} tokens {said} for memory ({margin:+.2f})", spent=(spent,))


ANSWER_TOKENS = 32
RETRIEVE = (
    "Below is the end of an agent's transcript. Earlier steps are no longer shown; notes on them can be retrieved. Does the next action "
    'need something from them that is not shown here? Answer with JSON only: {"retrieve": true} or {"retrieve": false}.'
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"retrieve": {"type": "boolean"}},
    "required": ["retrieve"],
    "additionalProperties": False,
}


def _question(text: str) -> ChatMessages:
    return [{"role": "system", "content": RETRIEVE}, {"role": "user", "content": break_template_tokens(text)}]
