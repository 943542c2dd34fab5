"""The interface between replay and a policy: start a session for a trace, decide turn by turn, and add text to a request.

A policy is one frozen dataclass in one file, with its parameters as fields, a `description` and its `deviations` from the source;
the registry finds it by name. Invariant: a session sees every turn once, in order, and nothing after it; after `resume` it decides
exactly as if it had made the earlier decisions itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pamer_lab.blocks import Block, MessageTokens
from pamer_lab.controller.probe import Probe
from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.recall_gate import RecallGate
from pamer_lab.controller.router import Recorder
from pamer_lab.controller.router_index import RouterKind
from pamer_lab.controller.settings import ControllerSettings
from pamer_lab.decisions import Decision, Item, ItemKind, Span, Spent, head_items
from pamer_lab.features.values import Cancel, OnProgress
from pamer_lab.looks import LineLook
from pamer_lab.memory import BufferedMemories, DetailWriter, Summariser
from pamer_lab.memory.summary import SourceBlock, Summary, within_budget
from pamer_lab.models.chat import Chat
from pamer_lab.models.embedder import Embedder
from pamer_lab.models.profiles import Profile
from pamer_lab.probes.draft_probe import DraftProbe
from pamer_lab.trajectory.values import Message, Role, Tool


@dataclass(frozen=True)
class History:
    """Everything before decision point `t`, and nothing after it."""

    t: int
    messages: Sequence[Message]
    prefix_end: int
    blocks: Sequence[Block]
    """The `t` blocks before the decision point."""
    cumulative: Sequence[int]
    """Tokens of the first 0, 1, ... `t` blocks."""
    prefix_tokens: int
    tools: tuple[Tool, ...]
    tools_tokens: int
    idle: float | None = None
    """Seconds since the previous request, by the trace's timestamps; None for the first request or without timestamps. Infinite
    if the client rewrote its history, so that little of it is cached."""

    @property
    def raw_tokens(self) -> int:
        """Tokens of the request as the agent would have sent it."""
        return self.tools_tokens + self.prefix_tokens + self.cumulative[self.t]

    def tokens(self, spans: Iterable[Span]) -> int:
        """Tokens of raw blocks."""
        return sum(self.cumulative[last] - self.cumulative[first] for first, last in spans)

    def head(self) -> list[Item]:
        """The items every context starts with."""
        return list(head_items(self.tools_tokens if self.tools else None, self.prefix_tokens if self.prefix_end else None))

    def raw(self, spans: Iterable[Span]) -> list[Item]:
        """Raw blocks as items, one per span; empty spans are skipped."""
        return [Item("blocks", self.tokens([span]), (span,)) for span in spans if span[0] < span[1]]

    def block_messages(self, block: int) -> Sequence[Message]:
        return self.blocks[block].of(self.messages)


class Resources(Protocol):
    """What a policy may use in addition to the history; models are loaded on first use."""

    session_id: str
    """Session under which memory is stored: the run's id."""

    @property
    def profile(self) -> Profile: ...

    @property
    def tokens(self) -> MessageTokens:
        """Counts with the profile's own tokenizer."""
        ...

    @property
    def recorder(self) -> Recorder:
        """Records every PaMER+ selection for the audit."""
        ...

    @property
    def summariser(self) -> Summariser: ...

    @property
    def embedder(self) -> Embedder: ...

    @property
    def chat(self) -> Chat:
        """The profile's chat model; raises `InputError` if it has none."""
        ...

    @property
    def settings(self) -> ControllerSettings:
        """The controller's defaults for this profile and its heads."""
        ...

    def detail_writer(self, settings: ControllerSettings) -> DetailWriter | None:
        """Writes PaMER+'s step details; None: the summariser's own rule-based details are used."""
        ...

    @property
    def probe(self) -> Probe: ...

    @property
    def memory(self) -> BufferedMemories:
        """The run's memory, buffered; `Resources` stores it together with the turns."""
        ...

    def step_recaller(self, settings: ControllerSettings, router: RouterKind) -> Recaller:
        """PaMER+'s router and recall agent over the run's memory."""
        ...

    @property
    def draft_probe(self) -> DraftProbe:
        """Probing-RAG's probe for the frozen model; raises an error if there is none."""
        ...

    def draft_gate(self) -> RecallGate:
        """Probing-RAG's gate before recall, with the frozen model."""
        ...

    def identity(self) -> dict[str, Any]:
        """What distinguishes these models from others; nothing is loaded."""
        ...

    def heads_identity(self) -> dict[str, str]:
        """Name, hash, model, layer and hint of the heads that vote."""
        ...


Need = Literal["heads", "embedder", "summariser", "router", "chat", "recorded calls", "weights"]
"""`heads`: trained heads on the frozen model's hidden states. `embedder`: an embedding model that ranks memories. `summariser`: writes
summaries; no language model in the embedded profile. `router`: names the steps to restore; no language model in the embedded profile.
`chat`: a language model, without which the policy cannot run. `recorded calls`: the agent's own memory calls, in the trace. `weights`: the
method's own model, which must be installed."""
Family = Literal["baseline", "host", "method", "pruning", "pamer"]
"""`baseline`: the base agent and the paper's simple rules. `host`: what agent programs do today. `method`: published methods from the
paper's table. `pruning`: words or lines are dropped from tool results. `pamer`: PaMER, PaMER+ and their ablations."""
FAMILIES: dict[Family, str] = {
    "baseline": "Baselines",
    "host": "What agent programs do",
    "method": "Published methods",
    "pruning": "Pruning of tool results",
    "pamer": "PaMER",
}
"""Families in the order they are shown, with their titles."""
Basis = Literal["code", "paper", "note", "inferred"]
"""`code`: the method's own code. `paper`: its paper. `note`: someone else's description. `inferred`: our own conclusion."""
Fact = tuple[Basis, str]
"""Where a fact comes from, and the fact itself; implementations are based on these."""
Offered = Literal["first", "also", "asked"]
"""`first`: preselected on pages, and run by `replay` by default. `also`: offered on pages, and run by default. `asked`: offered on pages,
and run only if named."""


class PolicySession(Protocol):
    """A policy at work on one trace."""

    def turn(self, history: History) -> Decision: ...

    def resume(self, decisions: Sequence[Decision]) -> None:
        """Restore the state after these decisions (none: start over); anything later is forgotten."""
        ...


class Policy(Protocol):
    """One way to manage context, with its parameters set."""

    description: ClassVar[str]
    """What it does, in one line."""
    sources: ClassVar[tuple[str, ...]]
    """Where the method comes from: paper, section or address."""
    facts: ClassVar[tuple[Fact, ...]]
    """What the implementation is based on."""
    deviations: ClassVar[tuple[str, ...]]
    """Where it differs from its source."""
    family: ClassVar[Family]
    """The group it is shown in."""
    needs_models: ClassVar[bool]
    """Whether heads vote on hidden states."""
    needs: ClassVar[tuple[Need, ...]]
    """Models and data it needs."""
    look: ClassVar[LineLook]
    """Its line in charts."""
    offered: ClassVar[Offered]
    """Whether it is a default."""
    acts_live: ClassVar[bool]
    """Whether it needs only the past, so that it can act on a running agent."""

    @property
    def name(self) -> str:
        """Name and parameters in canonical form, such as `sliding-window:5`."""
        ...

    def settings(self, resources: Resources) -> dict[str, Any]:
        """Everything that affects a decision; part of the run's identity."""
        ...

    def start(self, resources: Resources) -> PolicySession: ...


@runtime_checkable
class Embeds(Protocol):
    """A policy that embeds texts; the estimate of its run time needs to know how much."""

    def embeds(self, task: float, block: float) -> dict[str, float]:
        """Name of a text -> characters of it that a turn embeds, on average; `task` and `block`: characters of the task and of a block.

        Texts with the same name are the same for every policy, so they are embedded only once."""
        ...


@dataclass(frozen=True)
class Coming:
    """A recorded trace and the decision points that a replay reaches next."""

    messages: Sequence[Message]
    tools: Sequence[Tool]
    blocks: Sequence[Block]
    points: Sequence[int]


@runtime_checkable
class ReadsAhead(Protocol):
    """A policy whose heads read inputs that the recorded trace alone determines, so that the states of many turns are computed in advance.

    Only the states: its session still sees nothing after its turn, and decides the same without them.
    """

    def read_ahead(self, coming: Coming, resources: Resources, progress: OnProgress | None, cancel: Cancel | None) -> None: ...


def add_text(kind: ItemKind, text: str, spans: tuple[Span, ...], tokens: MessageTokens, *, source: str = "", role: Role = "user") -> Item:
    """An item for a message that is not in the trace, counted as the model would read it."""
    return Item(kind, tokens.total([Message(role, text)]), spans, source, text, role)


def summary_spent(summary: Summary, blocks: Sequence[SourceBlock], resources: Resources) -> Spent:
    """Tokens of a summary: as its model reported them, or what a rule read (within the source budget) and wrote."""
    name = resources.summariser.name
    if summary.usage.calls:
        return Spent.of("summary", name, summary.usage)
    tokens = resources.tokens
    read = tokens.total([message for block in within_budget(blocks) for message in block.messages])
    return Spent("summary", read, tokens.counter.count([summary.text])[0], name, local=True)
