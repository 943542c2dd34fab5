"""`pace-paper` and `pace-code`: PACE shows each older step in one of four forms, by its relevance to what the agent does now.

The paper and its released code differ, so they are two policies. Nothing is lost for good: a placeholder can become the full step again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from pamer_lab.blocks.render import query_text, render_message, task_text
from pamer_lab.decisions import Decision, Spent
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.models.embedder import Matrix
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.pace_forms import FORMS, Array, Forms, Layout
from pamer_lab.policies.plain import PlainPolicy

TEMPERATURE = 0.3
QUERY_CHARACTERS, ANSWER_TOKENS = 15_000, 10_000
"""In the released code: characters of a query that are embedded, and tokens reserved for the answer."""
_OURS = (
    "embeddings and summaries are the profile's (BGE-M3 and a cheap chat model in the original); the brief form is the step's index line",
    "both forms of a step come from one summary; the original asks for both in one JSON call per chunk of 200 tokens or more",
    "glimpse, the tool that shows a step again, is called by the agent and cannot be replayed",
    "a form that is no shorter than the step is replaced by the next longer one",
)


@dataclass(frozen=True)
class _Shared(PlainPolicy):
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("embedder", "summariser")

    recent: int = field(default=2, metadata={"least": 1})
    """Number of newest blocks that are always shown in full."""
    turns: int = field(default=100, metadata={"least": 1})
    """Number of turns at which the pressure from session length reaches 1."""

    def thresholds(self, t: int, size: int) -> tuple[float, float, float]:
        """Upper limits of relative weight for placeholder, brief and detailed, at turn `t`; `size`: tokens of the last context."""
        raise NotImplementedError(type(self).__name__)

    def key_text(self, text: str) -> str:
        """The part of a step that is embedded."""
        raise NotImplementedError(type(self).__name__)

    def query(self, history: History, recent: Sequence[int], forms: Forms) -> str:
        """The text that the steps are compared with."""
        raise NotImplementedError(type(self).__name__)

    def allowed(self, history: History) -> float:
        """Token budget for all older steps together."""
        return float("inf")

    def embeds(self, task: float, block: float) -> dict[str, float]:
        return {f"{self.title} of {self.recent}": block + task + self.recent * block}

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
            "relative weight: softmax(cosine / 0.3) over the scored steps, times their number; query: the task and the last two steps",
        ),
        ("paper", "limits 0.4, 0.8, 1.5 times 1 + 0.5 * pressure; pressure is the larger of t / T_max and the last context over 128K"),
        ("paper", "T_max is the 95th percentile of task length on validation data; here it is 100, the code's limit of rounds"),
    )
    deviations: ClassVar[tuple[str, ...]] = _OURS
    look: ClassVar[LineLook] = LineLook("sky", "solid")

    budget: int = field(default=128_000, metadata={"least": 1})
    """Context size in tokens at which the pressure from size reaches 1."""

    def thresholds(self, t: int, size: int) -> tuple[float, float, float]:
        scale = 1 + 0.5 * max(t / self.turns, size / self.budget)
        return 0.4 * scale, 0.8 * scale, 1.5 * scale

    def key_text(self, text: str) -> str:
        return text

    def query(self, history: History, recent: Sequence[int], forms: Forms) -> str:
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
            "older steps get 60 % of 100,000 tokens less 10,000 and the task; steps beyond that take shorter forms",
        ),
        ("code", "glimpse is commented out"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        *_OURS,
        "a step is a block; the code's chunks are single messages",
    )
    look: ClassVar[LineLook] = LineLook("sky", "dot")

    budget: int = field(default=110_000, metadata={"least": 1})
    """Context size in tokens at which the pressure from size reaches 1."""
    room: int = field(default=100_000, metadata={"least": 1})
    """Size of the model's context window in tokens; older steps get 60 % of what the prefix and the answer leave."""

    def thresholds(self, t: int, size: int) -> tuple[float, float, float]:
        pressure = min(max(0.0, 2 * max(t / self.turns, size / self.budget) - 1), 1.0)
        low, high = (0.3, 0.7, 1.5), (0.8, 1.2, 2.5)
        first, second, third = (a + pressure * (b - a) for a, b in zip(low, high, strict=True))
        return first, second, third

    def key_text(self, text: str) -> str:
        return text[:200]

    def query(self, history: History, recent: Sequence[int], forms: Forms) -> str:
        task = f"Task: {task_text(history.messages[: history.prefix_end])}"
        return "\n\n".join([task, *(f"Recent: {forms.text(history, block)[:1_500]}" for block in recent)])[:QUERY_CHARACTERS]

    def embeds(self, task: float, block: float) -> dict[str, float]:
        query = min(task + self.recent * min(block, 1_500), QUERY_CHARACTERS)
        return {f"{self.title} of {self.recent}": min(block, 200) + query}

    def allowed(self, history: History) -> float:
        return 0.6 * max(self.room - history.prefix_tokens - ANSWER_TOKENS, 0)


class _Session:
    def __init__(self, policy: _Shared, resources: Resources) -> None:
        self.policy, self.resources = policy, resources
        self._forms = Forms(resources)
        self._layout = Layout(self._forms)
        self._scored: list[int] = []
        self._seen = 0
        """Number of blocks already considered for `_scored`."""
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
        self._scored += [block for block in range(self._seen, last) if history.blocks[block].complete]
        self._seen = last
        if not self._scored:
            items = (*history.head(), *history.raw([(0, history.t)]))
            return Decision("pass", f"no step is older than the newest {self.policy.recent}", items, spent=tuple(spent))
        embedder = self.resources.embedder
        texts = ["".join(render_message(message) for message in history.block_messages(block)) for block in range(len(self._keys), last)]
        if texts:
            new = embedder.embed([self.policy.key_text(text) for text in texts])
            self._keys = np.concatenate([self._keys, new]) if len(self._keys) else new
        query = self.policy.query(history, range(last, history.t), self._forms)
        scored = np.array(self._scored)
        cosines = (self._keys[:last] if len(scored) == last else self._keys[scored]) @ embedder.embed([query])[0]  # [scored]
        places = self._layout.within(history, scored, self._chosen(history, cosines), self.policy.allowed(history))
        items = (*history.head(), *self._layout.items(history, scored, places, last))
        number = np.bincount(places, minlength=len(FORMS)).tolist()
        counts = ", ".join(f"{number[place]} {FORMS[place]}" for place in reversed(range(len(FORMS))))
        embedded = Spent("embedding", self.resources.tokens.counter.count([query])[0], model=embedder.name, local=True, calls=0)
        return Decision("pass", f"older steps by relevance: {counts}", items, spent=(*spent, embedded))

    def _chosen(self, history: History, cosines: np.ndarray) -> Array:
        """The form of each scored step, by its place in `FORMS`."""
        floored = np.maximum(cosines, 0) if isinstance(self.policy, PaceCode) else cosines
        weights = np.exp((floored - floored.max()) / TEMPERATURE)
        relative = len(weights) * weights / weights.sum()
        places: Array = np.searchsorted(self.policy.thresholds(history.t, self._size), relative)
        return places

    def resume(self, decisions: Sequence[Decision]) -> None:
        self._size = decisions[-1].tokens if decisions else 0
        # When a turn is decided, the forms of all blocks before it have been written.
        self._forms.charged = max((t for t, decision in enumerate(decisions) if decision.action != "fallback"), default=0)
