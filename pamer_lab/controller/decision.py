"""What one request came to: a frozen `Decision` that carries its reason and everything the reason rests on.

Pure values. What always holds: every earlier block has exactly one state, and the items, in order, are the returned
request.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from pamer_lab.models.usage import ChatUsage, usage_of

Action = Literal["pass", "compress", "recall", "fallback"]
"""`pass`: nothing was added; blocks that stored memories cover are left out. `compress`: older blocks became a memory and
left this request. `recall`: stored memory was added. `fallback`: something failed, and the request is returned as it came."""

BlockState = Literal["active", "summarised", "recalled", "restored", "absent"]
"""`active`: the block stands in the request. `summarised`: a stored memory covers it and nothing of it is in the request.
`recalled`: the summary that covers it is in the request. `restored`: the block itself was brought back as evidence,
complete or in part (`Decision.restored_in_part`).
`absent`: in the request in no form and in no memory; the controller never lets this happen, other policies do."""

ItemKind = Literal["tools", "prefix", "memory", "block"]
"""`tools`: the tool descriptions. `prefix`: system and task. `memory`: the message with recalled memory. `block`: one block."""

Operation = Literal["summary", "details", "embedding", "probe", "router", "recall"]
"""What work beside the main request was done: `summary`, `details` (one line per archived step, for PaMER+), `router` and `recall`
may ask a language model; `embedding` and `probe` are local work."""


_CHARGES = "auxiliary_work"


@dataclass(frozen=True)
class ContextItem:
    """One piece of the returned request."""

    kind: ItemKind
    tokens: int
    block: int | None = None
    """For `block`: its number in the caller's history."""
    memory_ids: tuple[str, ...] = ()
    """For `memory`: what was recalled."""
    steps: tuple[int, ...] = ()
    """For `memory`: the steps whose raw blocks it restores."""
    in_part: tuple[int, ...] = ()
    """Those of `steps` that are restored in part: the item holds an excerpt of the block."""


@dataclass(frozen=True)
class Auxiliary:
    """Tokens of one operation beside the main request, its failed and repeated calls included."""

    operation: Operation
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 1
    """Calls that a language model worked on. 0: a rule did it."""
    unknown: int = 0
    """Those of them that reported no usage; their tokens are in no sum."""

    @classmethod
    def of(cls, operation: Operation, model: str, usage: ChatUsage) -> "Auxiliary":
        return cls(operation, model, usage.input_tokens, usage.output_tokens, usage.calls, usage.unknown)


@contextmanager
def charging(operation: Operation, model: str, spent: list[Auxiliary]) -> Iterator[None]:
    """Adds what a failed operation's calls took to `spent`; the error goes on."""
    try:
        yield
    except Exception as error:
        if (usage := usage_of(error)).calls:
            spent.append(Auxiliary.of(operation, model, usage))
        raise


def charge(error: Exception, spent: Sequence[Auxiliary]) -> None:
    """Say on an error what the operations before it took."""
    setattr(error, _CHARGES, tuple(spent))


def charges_of(error: Exception) -> tuple[Auxiliary, ...]:
    """What the operations before an error took."""
    return getattr(error, _CHARGES, ())


@dataclass(frozen=True)
class Decision:
    """The outcome of one request."""

    action: Action
    reason: str
    """Why, in words."""
    session_id: str = ""
    turn: int = 0
    """The decision point: number of blocks in the caller's history."""
    tokens_before: int = 0
    """Tokens of the request as it came, tools included."""
    tokens_after: int = 0
    """Tokens of the request as it is returned, tools included."""
    candidate_tokens: int = 0
    """`Tok(O)`: tokens of the blocks that could be compressed."""
    tokenizer: str = ""
    logits: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()
    votes: tuple[bool, ...] = ()
    """One per head; empty where the probe was not asked or failed."""
    memory_ids: tuple[str, ...] = ()
    """The memory that was stored, or those that were recalled, in stable order."""
    restored_steps: tuple[int, ...] = ()
    restored_in_part: tuple[int, ...] = ()
    """Those of `restored_steps` of which only an excerpt came back; their state is `restored` too."""
    memories: int = 0
    """Sound memories of the session before this request."""
    error: str = ""
    """What failed, also where the request could go on; empty if nothing did."""
    items: tuple[ContextItem, ...] = ()
    block_states: tuple[BlockState, ...] = ()
    """One state per block of the caller's history."""
    auxiliary: tuple[Auxiliary, ...] = ()
    """All work beside the request in order, also what came to nothing."""
    timings: dict[str, float] = field(default_factory=dict)
    """Milliseconds per stage, and `total`."""

    @property
    def vote_count(self) -> int:
        return sum(self.votes)


def states(blocks: int, active: Sequence[int], recalled: Sequence[int] = (), restored: Sequence[int] = ()) -> tuple[BlockState, ...]:
    """One state per block, given which are active, recalled through a summary, or restored raw; the rest is summarised."""
    result: list[BlockState] = ["summarised"] * blocks
    for state, numbers in (("recalled", recalled), ("restored", restored), ("active", active)):
        for number in numbers:
            result[number] = state  # type: ignore[call-overload]
    return tuple(result)
