"""Gates before PaMER's recall: whether the next action needs memory at all, after FLARE and Self-RAG.

Off by default: the paper recalls at every request that does not compress. A gate that fails lets recall go on, and the decision says so.
Invariant: a gate reads what the request holds and nothing else, and reports what it took.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.controller.plan import Plan
from pamer_lab.controller.recall import Recalled, TopSummaries
from pamer_lab.decisions import Spent, charge
from pamer_lab.errors import LabError, ModelError
from pamer_lab.models.chat import Chat
from pamer_lab.models.draft import draft
from pamer_lab.models.usage import usage_of

GateKind = Literal["always", "flare", "self-rag"]
"""`always`: recall is never asked about. `flare`: a draft of the next action has an uncertain token. `self-rag`: the chat model says so."""
DRAFT_TOKENS = 64
"""FLARE's look-ahead."""
UNCERTAIN, MASKED = 0.8, 0.4
"""FLARE: memory is searched if a token of the draft is less probable than the first; those under the second leave the query."""


@dataclass(frozen=True)
class Opened:
    """What a gate said."""

    recall: bool
    reason: str
    query: str = ""
    """What memory is searched with; empty: task and recent blocks, as without a gate."""
    spent: tuple[Spent, ...] = ()


class RecallGate(Protocol):
    """Says whether a request needs memory."""

    name: str

    def ask(self, plan: Plan) -> Opened: ...


class GatedRecall:
    """A recaller that asks first."""

    def __init__(self, gate: RecallGate, inner: TopSummaries) -> None:
        self._gate, self._inner = gate, inner

    def recall(self, plan: Plan) -> Recalled:
        try:
            said = self._gate.ask(plan)
        except LabError as error:
            usage = usage_of(error)
            spent = (Spent.of("gate", self._gate.name, usage),) if usage.calls else ()
            found = self._found(plan, "", spent)
            return replace(found, spent=(*spent, *found.spent), error=f"recall gate: {error}")
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
    """Recall where a draft of the next action has a token that the model is not sure of."""

    def __init__(self, chat: Chat, characters: int) -> None:
        self._chat, self._characters = chat, characters
        self.name = f"flare, {chat.name}"

    def ask(self, plan: Plan) -> Opened:
        drafted = draft(self._chat, _prompt(NEXT, plan, self._characters), DRAFT_TOKENS)
        spent = (Spent.of("gate", self._chat.name, drafted.usage),)
        least = min(drafted.probabilities, default=1.0)
        if least >= UNCERTAIN:
            return Opened(False, f"every token of the drafted action has a probability of at least {least:.2f}", spent=spent)
        kept = "".join(text for text, chance in zip(drafted.tokens, drafted.probabilities, strict=True) if chance >= MASKED)
        task = plan.query(self._characters).partition("\n")[0]
        query = f"{task}\n{kept.strip()}" if kept.strip() else ""
        return Opened(True, f"a token of the drafted action has a probability of {least:.2f}", query, spent)


class SelfRagGate:
    """Recall where the chat model says that the next action needs something that is no longer shown."""

    def __init__(self, chat: Chat, characters: int) -> None:
        self._chat, self._characters = chat, characters
        self.name = f"self-rag, {chat.name}"

    def ask(self, plan: Plan) -> Opened:
        answer = self._chat.complete(_prompt(RETRIEVE, plan, self._characters), max_tokens=ANSWER_TOKENS, schema=SCHEMA)
        found = answer.data()["retrieve"]
        if not isinstance(found, bool):
            raise ModelError(f"{self._chat.name} answered {found!r}, neither true nor false")
        said = "the model asks for memory" if found else "the model asks for no memory"
        return Opened(found, said, spent=(Spent.of("gate", self._chat.name, answer.usage),))


ANSWER_TOKENS = 32
NEXT = "You are the agent in the transcript below. Write its next action, and nothing else."
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


def _prompt(instruction: str, plan: Plan, characters: int) -> Sequence[Mapping[str, str]]:
    return [
        {"role": "system", "content": instruction},
        {"role": "user", "content": break_template_tokens(plan.query(characters))},
    ]
