"""`acon`: ACON's history compression; `acon-observation`: its rewriting of large tool results, which is off-policy in a replay."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.blocks import recent_start
from pamer_lab.blocks.render import task_text
from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item, Spent, spans_of
from pamer_lab.errors import LabError
from pamer_lab.looks import LineLook
from pamer_lab.memory.summary import SourceBlock
from pamer_lab.models.usage import usage_of
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources, summary_spent
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened, SummarySession

_SOURCES = ("ACON, microsoft/acon", "PaMER paper, ACON-Core (a name we found nowhere else)")
_GUIDELINE = "the guideline is not optimised: ACON's contribution needs paired runs that succeed and fail, which a replay cannot provide"


@dataclass(frozen=True)
class Acon(PlainPolicy):
    """Summarises everything older than the newest turns once it exceeds a token limit."""

    title: ClassVar[str] = "acon"
    description: ClassVar[str] = "when the last summary and the older history pass T tokens, they become a new summary"
    sources: ClassVar[tuple[str, ...]] = _SOURCES
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "note",
            "everything except the first user message and the last turn is counted; above 4,096 tokens it is compressed",
        ),
        ("code", "configurations that its prompt optimiser writes: threshold 2,048, preserve_last_k_turns 1, history_summary_rule reset"),
        ("note", "history_summary_rule: reset (default) or accumulate; on a failure the run continues uncompressed"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        _GUIDELINE,
        "summaries are written as PaMER's are (1,024 tokens) and are a message of their own after the task",
    )
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("black", "solid")

    threshold: int = 4_096
    """Tokens of the last summary and the older history (with `accumulate`: of the older history alone) above which they are compressed;
    0 compresses as soon as there is an older block."""
    keep: int = field(default=1, metadata={"least": 0})
    """Number of newest complete blocks to keep."""
    rule: str = field(default="reset", metadata={"choices": ("reset", "accumulate")})
    """`reset`: the new summary replaces the last one. `accumulate`: it is added to the earlier ones."""

    def start(self, resources: Resources) -> PolicySession:
        return _History(self, resources)


class _History(SummarySession):
    def __init__(self, policy: Acon, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy
        self.accumulates = policy.rule == "accumulate"

    def due(self, history: History) -> tuple[list[int], str]:
        waiting = self.waiting(history, recent_start(history.blocks, self.policy.keep))
        size = history.tokens(spans_of(waiting)) + (0 if self.accumulates else sum(item.tokens for item in self.summaries))
        if not waiting or size <= self.policy.threshold:
            return [], f"summary and older history have {size:,} tokens, not over {self.policy.threshold:,}"
        return waiting, f"summary and older history have {size:,} tokens, over {self.policy.threshold:,}"


@dataclass(frozen=True)
class AconObservation(PlainPolicy):
    """Rewrites large results as they arrive; the originals are never seen again."""

    title: ClassVar[str] = "acon-observation"
    description: ClassVar[str] = "every tool result over T tokens is rewritten shorter before the model sees it (off-policy in a replay)"
    sources: ClassVar[tuple[str, ...]] = _SOURCES
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "note",
            "each new tool output over 1,024 tokens (400 in generated configurations) is rewritten "
            "with task and history in view; the raw output is lost",
        ),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "off-policy: the recorded agent acted on the raw result, not on what this policy shows",
        _GUIDELINE,
        "a result is rewritten with only the task in view",
    )
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("black", "dot")

    threshold: int = field(default=1_024, metadata={"least": 1})
    """Tokens of a result above which it is rewritten."""

    def start(self, resources: Resources) -> PolicySession:
        return _Observations(self, resources)


REWRITTEN = "rewritten"


class _Observations:
    def __init__(self, policy: AconObservation, resources: Resources) -> None:
        self._arranged = Arranged()
        self.policy, self.resources = policy, resources
        self._shortened = Shortened(resources.tokens)
        self._items: dict[int, Item | None] = {}
        self._done = 0

    def turn(self, history: History) -> Decision:
        spent: list[Spent] = []
        error = ""
        while self._done < history.t:
            try:
                item = self._rewritten(history, self._done, spent)
            except LabError as failed:
                # The raw result stays, as it does in ACON.
                item, error = None, str(failed)
                if (usage := usage_of(failed)).calls:
                    spent.append(Spent.of("summary", self.resources.summariser.name, usage))
            if item is not None:
                self._items[self._done] = item
            self._done += 1
        reason = f"results over {self.policy.threshold:,} tokens in {counted(len(self._items), 'block')} are rewritten"
        return Decision("pass", reason, (*history.head(), *self._arranged(history, self._items)), spent=tuple(spent), error=error)

    def _rewritten(self, history: History, block: int, spent: list[Spent]) -> Item | None:
        messages = history.block_messages(block)
        texts: dict[int, str] = {}
        for place in self._shortened.results.of(history, block):
            if self._shortened.size(messages[place]) > self.policy.threshold:
                source = [SourceBlock(block, (messages[place],))]
                summary = self.resources.summariser.summarise(task_text(history.messages[: history.prefix_end]), source)
                spent.append(summary_spent(summary, source, self.resources))
                texts[place] = summary.text
        return self._shortened.block(history, block, REWRITTEN, texts) if texts else None

    def resume(self, decisions: Sequence[Decision]) -> None:
        last = decisions[-1].items if decisions else ()
        self._items = {item.spans[0][0]: item for item in last if item.source == REWRITTEN}
        # At turn t, all blocks before t have been processed.
        self._done = max(len(decisions) - 1, 0)
