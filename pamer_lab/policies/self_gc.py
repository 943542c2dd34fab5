"""`self-gc`: a planner folds, masks or prunes old steps once the request exceeds 30 % of the window; `self-gc-rules` plans by rules.

Invariant: only the valid part of a plan is applied: known, unprotected steps, and edits that make them shorter.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from msgspec.structs import replace

from pamer_lab.blocks.render import render_message
from pamer_lab.decisions import Action, Decision, Item, Spent, spans_of
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import clip
from pamer_lab.memory.terms import ERROR, terms
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened, head_tokens
from pamer_lab.policies.step_editor import editing_prompt, operations_schema

Operation = Literal["fold", "mask", "prune", "restore"]
"""`fold`: a pointer replaces the results, which are kept outside. `mask`: a result keeps its beginning and end. `prune`: the results are
removed. `restore`: a folded step is shown as it was."""
MASK_CHARACTERS = 3_200
_SOURCES = ("Self-GC, arXiv 2607.00692 (no official code found)",)
_FACTS: tuple[Fact, ...] = (
    ("note", "from 30 % of the window on, a separate planner proposes fold, mask or prune per object; the last turn is protected"),
    (
        "note",
        "a plan is checked and applied only if its savings beat the invalidated cache; folded objects can come back",
    ),
    ("inferred", "savings are counted over `payback` turns; the descriptions give no horizon, 10 is our choice"),
    (
        "inferred",
        "objects are blocks here; a masked result keeps 3,200 characters, as in an independent re-implementation (there 800 of its "
        "beginning and 2,400 of its end, here half each)",
    ),
)


@dataclass(frozen=True)
class _Shared(PlainPolicy):
    family: ClassVar[Family] = "method"
    sources: ClassVar[tuple[str, ...]] = _SOURCES
    facts: ClassVar[tuple[Fact, ...]] = _FACTS

    window: int = field(default=128_000, metadata={"least": 1})
    """Size of the model's context window in tokens."""
    share: float = field(default=0.3, metadata={"least": 0.01, "most": 1})
    """Share of the window above which a plan is made."""
    restore: bool = True
    """Whether folded steps may come back."""
    payback: int = field(default=10, metadata={"least": 1})
    """Number of turns within which the tokens saved must exceed those after the edit, which are no longer cached."""


@dataclass(frozen=True)
class SelfGc(_Shared):
    """Plans with the profile's chat model."""

    title: ClassVar[str] = "self-gc"
    description: ClassVar[str] = "a language model plans which old steps to fold, mask, prune or restore; the plan is checked first"
    deviations: ClassVar[tuple[str, ...]] = (
        "the planner decides what to restore, while in the original the agent asks for it; the planner is called only over the limit",
        "the planner is the profile's chat model; the original's default is Qwen3.6-Plus",
    )
    needs: ClassVar[tuple[Need, ...]] = ("chat",)
    look: ClassVar[LineLook] = LineLook("vermilion", "dash")

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources, _Asking(resources))


@dataclass(frozen=True)
class SelfGcRules(_Shared):
    """Plans by rules."""

    title: ClassVar[str] = "self-gc-rules"
    description: ClassVar[str] = "a stand-in for Self-GC without a model: errors are pruned, large results folded, the rest masked"
    deviations: ClassVar[tuple[str, ...]] = (
        "not Self-GC: results that report an error are pruned, results over 1,000 tokens are folded, others over 3,200 characters masked; "
        "a folded step comes back when the newest step names something that only it named",
    )
    look: ClassVar[LineLook] = LineLook("vermilion", "dot")

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources, _Rules(resources))


Plan = Mapping[int, Operation]


class _Session:
    def __init__(self, policy: _Shared, resources: Resources, planner: "_Asking | _Rules") -> None:
        self.policy, self.resources, self.planner = policy, resources, planner
        self.shortened = Shortened(resources.tokens)
        self._arranged = Arranged()
        self.state: dict[int, Operation] = {}
        """Operations in force, by block; never `restore`."""
        self._folded: set[int] = set()
        self._shown: dict[int, Item] = {}
        """The shorter items of these blocks."""

    def turn(self, history: History) -> Decision:
        if len(self._shown) < len(self.state):  # after a resume
            for block, operation in self.state.items():
                self._put(history, block, operation)
        before = self._items(history)
        size, limit = head_tokens(history) + self._arranged.tokens, self.policy.share * self.policy.window
        within = Decision("pass", f"the request has {size:,} tokens, within {limit:,.0f}", before)
        if size <= limit and not (self._folded and self.policy.restore):
            return within
        try:
            proposed, spent = self.planner.plan(history, dict(self.state), over=size > limit)
        except LabError as error:
            usage = usage_of(error)
            cost = (Spent.of("router", self.planner.name, usage),) if usage.calls else ()
            return Decision("pass", "the planner failed; nothing changes", before, error=str(error), spent=cost)
        valid = self._valid(history, proposed)
        restored = [block for block, operation in valid.items() if operation == "restore"]
        edits = {block: operation for block, operation in valid.items() if operation != "restore"}
        if edits and not self._pays(history, edits, size):
            edits = {}
        if size <= limit and not restored:
            return replace(within, spent=spent)
        if not edits and not restored:
            return Decision(
                "pass", f"the request has {size:,} tokens; no operation pays back within {self.policy.payback} turns", before, spent=spent
            )
        for block, operation in edits.items():
            self._put(history, block, operation)
        for block in restored:
            del self.state[block], self._shown[block]
            self._folded.discard(block)
        counts = ", ".join(f"{sum(entry == name for entry in valid.values())} {name}" for name in ("fold", "mask", "prune", "restore"))
        action: Action = "compress" if edits else "recall"
        stored = spans_of(sorted(self._folded))
        done = tuple(restored) if not edits else ()
        return Decision(
            action, f"the request had {size:,} tokens: {counts}", self._items(history), stored=stored, restored_steps=done, spent=spent
        )

    def _valid(self, history: History, proposed: Plan) -> dict[int, Operation]:
        """The operations on known, complete and unprotected blocks; only folded blocks can be restored."""
        last = history.t - 1
        return {
            block: operation
            for block, operation in sorted(proposed.items())
            if 0 <= block < last
            and history.blocks[block].complete
            and (self.state.get(block) == "fold" if operation == "restore" else block not in self.state)
            and (operation != "restore" or self.policy.restore)
            and (operation == "restore" or self._item(history, block, operation) is not None)
        }

    def _pays(self, history: History, edits: Plan, size: int) -> bool:
        """Whether the tokens saved within `payback` turns exceed those that the edit removes from the cache."""
        saved = sum(history.tokens([(block, block + 1)]) - self._tokens(history, block, edits[block]) for block in edits)
        behind = history.tokens([(min(edits), history.t)])
        return saved * self.policy.payback > min(behind, size)

    def _tokens(self, history: History, block: int, operation: Operation) -> int:
        item = self._item(history, block, operation)
        return item.tokens if item is not None else history.tokens([(block, block + 1)])

    def _item(self, history: History, block: int, operation: Operation) -> Item | None:
        if self.shortened.known(block, operation):
            return self.shortened.kept(block, operation)
        messages = history.block_messages(block)
        texts: dict[int, str] = {}
        for place in self.shortened.results.of(history, block):
            content = messages[place].content
            match operation:
                case "fold":
                    texts[place] = f"[Folded: step {block}, {len(content):,} characters kept outside]"
                case "mask":
                    texts[place] = clip(content, MASK_CHARACTERS)
                case _:
                    texts[place] = "[Pruned]"
        return self.shortened.block(history, block, operation, texts)

    def _put(self, history: History, block: int, operation: Operation) -> None:
        """Put an operation in force; only valid ones, which make their block shorter."""
        self.state[block] = operation
        if (item := self._item(history, block, operation)) is not None:
            self._shown[block] = item
        if operation == "fold":
            self._folded.add(block)

    def _items(self, history: History) -> tuple[Item, ...]:
        return (*history.head(), *self._arranged(history, self._shown))

    def resume(self, decisions: Sequence[Decision]) -> None:
        last = decisions[-1].items if decisions else ()
        self.state = {item.spans[0][0]: item.source for item in last if item.kind == "edited"}  # type: ignore[misc]


class _Rules:
    name = "self-gc-rules"

    def __init__(self, resources: Resources) -> None:
        self._tokens = resources.tokens
        self._terms: list[frozenset[str]] = []
        self._having: Counter[str] = Counter()
        """Term -> number of blocks before the newest one that mention it."""
        self._where: dict[str, int] = {}
        """Term -> the last of those blocks."""
        self._seen = 0
        """Number of blocks already considered for `_operations`."""
        self._operations: dict[int, Operation] = {}
        """Block -> its operation, if that could make it shorter."""

    def plan(self, history: History, state: Mapping[int, Operation], *, over: bool) -> tuple[Plan, tuple[Spent, ...]]:
        for block in range(len(self._terms), history.t):
            if block:
                self._having.update(self._terms[block - 1])
                self._where.update(dict.fromkeys(self._terms[block - 1], block - 1))
            self._terms.append(terms("".join(render_message(message) for message in history.block_messages(block))))
        named = {self._where[name] for name in self._terms[-1] if self._having[name] == 1}
        plan: dict[int, Operation] = {block: "restore" for block in sorted(named) if state.get(block) == "fold"}
        if over:
            for block in range(self._seen, history.t - 1):
                if operation := self._operation(history, block):
                    self._operations[block] = operation
            self._seen = max(self._seen, history.t - 1)
            plan |= {block: self._operations[block] for block in sorted(self._operations.keys() - state.keys())}
        return plan, ()

    def _operation(self, history: History, block: int) -> Operation | None:
        results = history.block_messages(block)[1:]
        if any(message.error or ERROR.search(message.content[:400]) for message in results):
            return "prune"
        if self._tokens.total(results) > 1_000:
            return "fold"
        return "mask" if any(len(message.content) > MASK_CHARACTERS for message in results) else None


INSTRUCTION = (
    "You manage the memory of an agent. Below are its task and an index of its steps with their size and beginning. Choose for each step "
    "that is no longer needed in full: fold (a pointer stays, it can come back), mask (beginning and end stay) or prune (gone). A folded "
    "step that is needed now: restore. Leave out steps that stay as they are. Answer with JSON only."
)
SCHEMA = operations_schema("fold", "mask", "prune", "restore")
HEAD_CHARACTERS = 160


class _Asking:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @property
    def name(self) -> str:
        """The model that is asked and billed."""
        return self._resources.chat.name

    def plan(self, history: History, state: Mapping[int, Operation], *, over: bool) -> tuple[Plan, tuple[Spent, ...]]:
        if not over:
            return {}, ()  # a question at every turn would cost more than a step that comes back late
        chat = self._resources.chat
        prompt = editing_prompt(INSTRUCTION, history, lambda block: state.get(block, "full"), HEAD_CHARACTERS)
        answer = chat.complete(prompt, max_tokens=2_048, schema=SCHEMA)
        plan = {int(entry["step"]): entry["operation"] for entry in answer.data()["operations"]}
        return plan, (Spent.of("router", chat.name, answer.usage),)
