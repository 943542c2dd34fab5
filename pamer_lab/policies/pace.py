"""`pace-paper` and `pace-code`: PACE shows each older step in one of four forms, by how much it bears on what the agent does now.

The paper and its released code differ, so they are two policies. Nothing is lost for good: a step that was a placeholder can be full again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from pamer_lab.blocks.render import query_text, render_message, task_text
from pamer_lab.decisions import Decision, Item, Spent
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import SourceBlock, Summary
from pamer_lab.models.embedder import Matrix
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources, add_text, summary_spent
from pamer_lab.policies.plain import PlainPolicy, arranged

Form = Literal["placeholder", "brief", "detailed", "full"]
FORMS: tuple[Form, ...] = ("placeholder", "brief", "detailed", "full")
TEMPERATURE = 0.3
QUERY_CHARACTERS, ANSWER_TOKENS = 15_000, 10_000
"""Of the released code: what is embedded of a query, and what it leaves for the answer."""
_OURS = (
    "embeddings and summaries are the profile's (BGE-M3 and a cheap chat model in the original); the brief form is the step's index line",
    "each step has its forms from one summary; the original asks for both in one JSON call per chunk of 200 tokens or more",
    "glimpse, the tool that shows a step again, is the agent's own and cannot be replayed",
    "a form that would be no shorter than the step is left out for the next longer one",
)


@dataclass(frozen=True)
class _Shared(PlainPolicy):
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("embedder", "summariser")

    recent: int = field(default=2, metadata={"least": 1})
    """Newest blocks that are always full."""
    turns: int = field(default=100, metadata={"least": 1})
    """Turns at which the pressure of length is full."""

    def thresholds(self, t: int, size: int) -> tuple[float, float, float]:
        """Upper limits of relative weight for placeholder, brief and detailed, at turn `t` after a context of `size` tokens."""
        raise NotImplementedError(type(self).__name__)

    def key_text(self, text: str) -> str:
        """What is embedded of a step."""
        raise NotImplementedError(type(self).__name__)

    def query(self, history: History, recent: Sequence[int], forms: "_Forms") -> str:
        """What the steps are compared with."""
        raise NotImplementedError(type(self).__name__)

    def allowed(self, history: History) -> float:
        """Tokens that the older steps may have together."""
        return float("inf")

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


@dataclass(frozen=True)
class PacePaper(_Shared):
    """As published."""

    title: ClassVar[str] = "pace-paper"
    description: ClassVar[str] = "PACE as published: each older step is full, detailed, brief or a placeholder, by relevance and pressure"
    sources: ClassVar[tuple[str, ...]] = ("PACE, its paper's algorithm",)
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "paper",
            "relative weight: softmax(cosine / 0.3) over the scored steps, times their number; query: task and last two steps",
        ),
        ("paper", "limits 0.4, 0.8, 1.5 times 1 + 0.5 * pressure; pressure is the larger of t / T_max and the last context over 128K"),
        ("paper", "T_max is the 95th percentile of task length on validation data; 100, the code's limit of rounds, is used for it here"),
    )
    deviations: ClassVar[tuple[str, ...]] = _OURS
    look: ClassVar[LineLook] = LineLook("sky", "solid")

    budget: int = field(default=128_000, metadata={"least": 1})
    """Tokens of a context at which the pressure of size is full."""

    def thresholds(self, t: int, size: int) -> tuple[float, float, float]:
        scale = 1 + 0.5 * max(t / self.turns, size / self.budget)
        return 0.4 * scale, 0.8 * scale, 1.5 * scale

    def key_text(self, text: str) -> str:
        return text

    def query(self, history: History, recent: Sequence[int], forms: "_Forms") -> str:
        messages = [message for block in recent for message in history.block_messages(block)]
        return query_text(task_text(history.messages[: history.prefix_end]), messages)


@dataclass(frozen=True)
class PaceCode(_Shared):
    """As released."""

    title: ClassVar[str] = "pace-code"
    description: ClassVar[str] = "PACE as its released code runs: keys from the first 200 characters, pressure only from half the limits on"
    sources: ClassVar[tuple[str, ...]] = ("ChihayaAine/PACE at adef46b",)
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "code",
            "keys embed a step's first 200 characters; the query is the task and the recent steps' detailed forms, 1,500 characters each, "
            "15,000 together",
        ),
        ("code", "limits 0.3, 0.7, 1.5 until half of 100 rounds or 110K tokens, then linear to 0.8, 1.2, 2.5; cosines are floored at 0"),
        (
            "code",
            "older steps get 60 % of 100,000 tokens less 10,000 and the task; from where they are over it, they take shorter forms",
        ),
        ("code", "glimpse is commented out"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        *_OURS,
        "a step is a block; the code's chunks are single messages",
    )
    look: ClassVar[LineLook] = LineLook("sky", "dot")

    budget: int = field(default=110_000, metadata={"least": 1})
    """Tokens of a context at which the pressure of size is full."""
    room: int = field(default=100_000, metadata={"least": 1})
    """Tokens of the model's window; older steps may have 60 % of what task and answer leave of it."""

    def thresholds(self, t: int, size: int) -> tuple[float, float, float]:
        pressure = min(max(0.0, 2 * max(t / self.turns, size / self.budget) - 1), 1.0)
        low, high = (0.3, 0.7, 1.5), (0.8, 1.2, 2.5)
        first, second, third = (a + pressure * (b - a) for a, b in zip(low, high, strict=True))
        return first, second, third

    def key_text(self, text: str) -> str:
        return text[:200]

    def query(self, history: History, recent: Sequence[int], forms: "_Forms") -> str:
        task = f"Task: {task_text(history.messages[: history.prefix_end])}"
        return "\n\n".join([task, *(f"Recent: {forms.text(history, block)[:1_500]}" for block in recent)])[:QUERY_CHARACTERS]

    def allowed(self, history: History) -> float:
        return 0.6 * max(self.room - history.prefix_tokens - ANSWER_TOKENS, 0)


class _Forms:
    """The forms of each block, written when it is first older than the recent ones."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._written: dict[int, tuple[str, str]] = {}
        """Detailed and brief form."""
        self._items: dict[tuple[int, Form], Item] = {}
        self._fitting: dict[tuple[int, Form], Item | None] = {}
        self.charged = 0
        """Blocks whose forms were written and counted at the last turn that was decided; after a failure they are written again."""

    def text(self, history: History, block: int) -> str:
        """The detailed form."""
        return self._of(history, block)[0]

    def item(self, history: History, block: int, form: Form) -> Item | None:
        """The block in a form, or in the next longer one that is shorter than the block; None: in full."""
        if (block, form) not in self._fitting:
            self._fitting[block, form] = self._shorter(history, block, form)
        return self._fitting[block, form]

    def size(self, history: History, block: int, form: Form) -> int:
        """Tokens of the block in a form."""
        item = self.item(history, block, form) if form != "full" else None
        return item.tokens if item is not None else history.tokens([(block, block + 1)])

    def _shorter(self, history: History, block: int, form: Form) -> Item | None:
        size = history.tokens([(block, block + 1)])
        for other in FORMS[FORMS.index(form) : -1]:
            item = self._item(history, block, other)
            if item.tokens < size:
                return item
        return None

    def _item(self, history: History, block: int, form: Form) -> Item:
        if (block, form) not in self._items:
            detailed, brief = self._of(history, block) if form != "placeholder" else ("", "")
            text = {"placeholder": f"[Step {block} is left out]", "brief": f"[Step {block}, brief] {brief}"}.get(
                form, f"[Step {block}, detailed]\n{detailed}"
            )
            # A placeholder holds nothing of its block, which is therefore absent.
            spans = ((block, block + 1),) if form != "placeholder" else ()
            self._items[block, form] = add_text("summary", text, spans, self._resources.tokens, source=f"step {block}, {form}")
        return self._items[block, form]

    def write(self, history: History, spent: list[Spent]) -> None:
        """Both forms of the blocks since the last turn that was decided, as PACE writes them when a step ends; adds what each took."""
        for block in range(self.charged, history.t):
            summary, source = self._write(history, block)
            spent.append(summary_spent(summary, source, self._resources))

    def _of(self, history: History, block: int) -> tuple[str, str]:
        if block not in self._written:
            self._write(history, block)
        return self._written[block]

    def _write(self, history: History, block: int) -> tuple[Summary, list[SourceBlock]]:
        source = [SourceBlock(block, tuple(history.block_messages(block)))]
        summary = self._resources.summariser.summarise(task_text(history.messages[: history.prefix_end]), source)
        self._written[block] = (summary.text, summary.details[0])
        return summary, source


class _Session:
    def __init__(self, policy: _Shared, resources: Resources) -> None:
        self.policy, self.resources = policy, resources
        self._forms = _Forms(resources)
        self._keys: Matrix = np.empty((0, 0), np.float32)
        self._size = 0
        """Tokens of the last context."""

    def turn(self, history: History) -> Decision:
        spent: list[Spent] = []
        try:
            self._forms.write(history, spent)
            decision = self._decide(history, spent)
            self._forms.charged = history.t
        except LabError as error:
            usage = usage_of(error)
            spent += [Spent.of("summary", self.resources.summariser.name, usage)] if usage.calls else []
            items = (*history.head(), *history.raw([(0, history.t)]))
            decision = Decision(
                "fallback", "a form or an embedding failed; the request is sent unchanged", items, error=str(error), spent=tuple(spent)
            )
        self._size = decision.tokens
        return decision

    def _decide(self, history: History, spent: list[Spent]) -> Decision:
        last = max(history.t - self.policy.recent, 0)
        scored = [block for block in range(last) if history.blocks[block].complete]
        if not scored:
            items = (*history.head(), *history.raw([(0, history.t)]))
            return Decision("pass", f"no step is older than the newest {self.policy.recent}", items, spent=tuple(spent))
        embedder = self.resources.embedder
        texts = ["".join(render_message(message) for message in history.block_messages(block)) for block in range(len(self._keys), last)]
        if texts:
            new = embedder.embed([self.policy.key_text(text) for text in texts])
            self._keys = np.concatenate([self._keys, new]) if len(self._keys) else new
        query = self.policy.query(history, range(last, history.t), self._forms)
        cosines = (self._keys[:last] if len(scored) == last else self._keys[scored]) @ embedder.embed([query])[0]  # [scored]
        chosen = dict(zip(scored, self._chosen(history, cosines), strict=True))
        self._within(history, chosen)
        other = {block: self._forms.item(history, block, form) for block, form in chosen.items() if form != "full"}
        items = (*history.head(), *arranged(history, {block: item for block, item in other.items() if item is not None}))
        number = Counter(chosen.values())
        counts = ", ".join(f"{number[name]} {name}" for name in reversed(FORMS))
        embedded = Spent("embedding", self.resources.tokens.counter.count([query])[0], model=embedder.name, local=True, calls=0)
        return Decision("pass", f"older steps by relevance: {counts}", items, spent=(*spent, embedded))

    def _within(self, history: History, chosen: dict[int, Form]) -> None:
        """Shorter forms from the step on that would take the older steps over what they may have."""
        left = self.policy.allowed(history)
        if history.tokens([(0, max(chosen) + 1)]) <= left:
            return
        for block, form in chosen.items():
            while (size := self._forms.size(history, block, form)) > left and form != FORMS[0]:
                form = FORMS[FORMS.index(form) - 1]
            chosen[block] = form
            left -= size

    def _chosen(self, history: History, cosines: np.ndarray) -> list[Form]:
        floored = np.maximum(cosines, 0) if isinstance(self.policy, PaceCode) else cosines
        weights = np.exp((floored - floored.max()) / TEMPERATURE)
        relative = len(weights) * weights / weights.sum()
        limits = self.policy.thresholds(history.t, self._size)
        return [FORMS[place] for place in np.searchsorted(limits, relative).tolist()]

    def resume(self, decisions: Sequence[Decision]) -> None:
        self._size = decisions[-1].tokens if decisions else 0
        # At a turn that was decided the forms of all blocks before it are written.
        self._forms.charged = max((t for t, decision in enumerate(decisions) if decision.action != "fallback"), default=0)
