"""`selfcompact`: a model decides by a rubric whether to compact now; `selfcompact-rules` decides the same criteria by rules."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from msgspec.structs import replace

from pamer_lab.blocks.marks import break_template_tokens
from pamer_lab.blocks.render import task_text
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Spent
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import block_text
from pamer_lab.memory.terms import ERROR, identifiers
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, Results, SummarySession

_SOURCES = ("SelfCompact, arXiv 2606.23525; tianjianl/selfcompact",)
_FACTS: tuple[Fact, ...] = (
    (
        "note",
        "compact if a unit of work is closed, 3 to 5 concrete facts sum it up, there was progress since, and it is not stuck",
    ),
    ("note", "stuck: at least 3 of the last 4 searches gave nothing new"),
    ("note", "forced at 0.30 of the window; afterwards only task and summary remain, nothing verbatim"),
    ("note", "the answer quotes its evidence; the question costs about 60 output tokens, and summaries have 1,000 to 3,000 tokens"),
)
_OURS = (
    "no source says how often the model is asked: here every `interval` blocks",
    "the search rubric is used for all traces; summaries are written as PaMER's are",
    "a step without results stays in the context",
)
LATEST = 4
"""Number of newest blocks that show whether the agent is stuck."""
STUCK = 3
FACTS_NEEDED = 3
"""Number of new identifiers that make a unit worth a summary."""


@dataclass(frozen=True)
class _Shared(PlainPolicy):
    family: ClassVar[Family] = "method"
    sources: ClassVar[tuple[str, ...]] = _SOURCES
    facts: ClassVar[tuple[Fact, ...]] = _FACTS

    interval: int = field(default=4, metadata={"least": 1})
    """Number of blocks between two checks."""
    window: int = field(default=128_000, metadata={"least": 1})
    """Size of the model's context window in tokens."""
    force: float = field(default=0.3, metadata={"least": 0.01, "most": 1})
    """Share of the window above which it compacts without asking."""


@dataclass(frozen=True)
class SelfCompact(_Shared):
    """Asks the profile's chat model at every check, and counts what that costs."""

    title: ClassVar[str] = "selfcompact"
    description: ClassVar[str] = "a language model is asked by a rubric whether to compact now; if so, only task and summary remain"
    deviations: ClassVar[tuple[str, ...]] = (
        *_OURS,
        "a separate model is asked, and reads the task and at most the last 24,000 characters of the steps; the original asks the acting "
        "model in its own context and reuses its cache",
        "the input of the question is therefore billed as uncached; cached=true bills it as read from the cache, as in the original",
    )
    needs: ClassVar[tuple[Need, ...]] = ("chat", "summariser")
    look: ClassVar[LineLook] = LineLook("purple", "dash")

    cached: bool = False
    """Whether the question's input is billed as read from the cache."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources, asks=True, cached=self.cached)


@dataclass(frozen=True)
class SelfCompactRules(_Shared):
    """Decides the rubric's criteria from the history."""

    title: ClassVar[str] = "selfcompact-rules"
    description: ClassVar[str] = "a stand-in for SelfCompact without a model: its rubric's points are decided by rules"
    deviations: ClassVar[tuple[str, ...]] = (
        *_OURS,
        "not SelfCompact: a unit is closed if the newest result contains no error, and can be summarised after three new identifiers",
    )
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("purple", "dashdot")

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources, asks=False)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "closed_unit": {"type": "boolean"},
        "summarisable": {"type": "boolean"},
        "progress": {"type": "boolean"},
        "stuck": {"type": "boolean"},
        "evidence": {"type": "string"},
    },
    "required": ["closed_unit", "summarisable", "progress", "stuck", "evidence"],
    "additionalProperties": False,
}
RUBRIC = (
    "You watch an agent at work and answer four questions about the steps since its last summary. closed_unit: is a unit of work finished? "
    "summarisable: can three to five concrete facts sum it up? progress: was anything new found since the last summary? stuck: did at "
    "least three of the last four searches bring nothing new? Quote in evidence the words that decide. Answer with JSON only."
)
PROMPT_CHARACTERS = 24_000


class _Session(SummarySession):
    def __init__(self, policy: SelfCompact | SelfCompactRules, resources: Resources, *, asks: bool, cached: bool = False) -> None:
        super().__init__(resources)
        self.policy, self.asks, self.cached = policy, asks, cached
        self._results = Results()
        self._known: set[str] = set()
        self._fresh: list[int] = []
        """Number of identifiers that first appear in each block."""
        self._asked: list[Spent] = []
        self._error = ""

    def turn(self, history: History) -> Decision:
        self._asked, self._error = [], ""
        decision = super().turn(history)
        return replace(decision, spent=(*self._asked, *decision.spent), error=decision.error or self._error)

    def due(self, history: History) -> tuple[list[int], str]:
        waiting, size = self.waiting(history, history.t), self.size(history)
        limit = self.policy.force * self.policy.window
        if not waiting:
            return [], "nothing is waiting for a summary"
        if size > limit:
            return waiting, f"the request has {size:,} tokens, over {limit:,.0f}: forced"
        if len(waiting) % self.policy.interval:
            return [], f"{counted(len(waiting), 'block')} since the last summary; asked every {self.policy.interval}"
        try:
            points = self._answer(history, waiting) if self.asks else self._read(history, waiting)
        except LabError as error:
            self._error = str(error)
            if (usage := usage_of(error)).calls:
                self._asked.append(Spent.of("router", self.resources.chat.name, usage, cached=self.cached))
            return [], "the question failed; nothing is compacted"
        said = ", ".join(f"{name.replace('_', ' ')}: {'yes' if value else 'no'}" for name, value in points.items())
        fire = points["closed_unit"] and points["summarisable"] and points["progress"] and not points["stuck"]
        return (waiting, said) if fire else ([], said)

    def _read(self, history: History, waiting: Sequence[int]) -> dict[str, bool]:
        """The rubric's criteria, decided by rules."""
        for block in range(len(self._fresh), history.t):
            found = {name for text in self._texts(history, block) for name in identifiers(text)}
            self._fresh.append(len(found - self._known))
            self._known |= found
        fresh = self._fresh[waiting[0] :]
        newest = self._texts(history, history.t - 1)
        latest = fresh[-LATEST:]
        return {
            "closed_unit": history.blocks[-1].complete and not any(ERROR.search(text) for text in newest),
            "summarisable": sum(fresh) >= FACTS_NEEDED,
            "progress": any(fresh),
            "stuck": sum(not count for count in latest) >= STUCK,
        }

    def _texts(self, history: History, block: int) -> list[str]:
        messages = history.block_messages(block)
        return [messages[place].content for place in self._results.of(history, block)]

    def _answer(self, history: History, waiting: Sequence[int]) -> dict[str, bool]:
        """The rubric's criteria, decided by the chat model."""
        chat = self.resources.chat
        steps = "\n\n".join(f"Step {block}\n{block_text(history.block_messages(block))}" for block in waiting)
        asked = f"Task:\n{task_text(history.messages[: history.prefix_end])}\n\nSteps since the last summary:\n{steps[-PROMPT_CHARACTERS:]}"
        prompt = [{"role": "system", "content": RUBRIC}, {"role": "user", "content": break_template_tokens(asked)}]
        answer = chat.complete(prompt, max_tokens=256, schema=SCHEMA)
        self._asked.append(Spent.of("router", chat.name, answer.usage, cached=self.cached))
        return {name: bool(value) for name, value in answer.data().items() if name != "evidence"}
