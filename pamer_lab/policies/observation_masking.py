"""`observation-masking:M`: tool results older than the newest M turns are replaced by one line; calls and reasoning stay."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.counts import counted
from pamer_lab.decisions import Decision, Item
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, PolicySession, Resources
from pamer_lab.policies.plain import Arranged, PlainPolicy, Shortened

MASKED = "masked"


@dataclass(frozen=True)
class ObservationMasking(PlainPolicy):
    """Forgets what tools answered and remembers what was done."""

    title: ClassVar[str] = "observation-masking"
    description: ClassVar[str] = "tool results older than the newest M turns become one line; calls and the agent's words stay"
    sources: ClassVar[tuple[str, ...]] = ("The Complexity Trap, arXiv 2508.21433",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "observations older than a window of M = 10 turns are replaced by a placeholder; reasoning and actions stay"),
        ("note", "the placeholder says how many lines were left out"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "a result that the placeholder would not shorten stays",
        "in traces without tool messages the environment's user messages are the results",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("green", "dash")

    m: int = field(default=10, metadata={"least": 1})
    """Newest turns whose results stay."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class Masking:
    """Blocks with their results masked, as far as that makes them shorter."""

    def __init__(self, resources: Resources) -> None:
        self._shortened = Shortened(resources.tokens)
        self._items: dict[int, Item] = {}
        self._done = 0

    def before(self, history: History, last: int) -> dict[int, Item]:
        """Masked items of the blocks before `last`, which never falls."""
        for block in range(self._done, last):
            messages = history.block_messages(block)
            texts = {place: placeholder(messages[place].content) for place in self._shortened.results.of(history, block)}
            item = self._shortened.block(history, block, MASKED, texts)
            if item is not None:
                self._items[block] = item
        self._done = max(self._done, last)
        return self._items


def placeholder(text: str) -> str:
    """What stands for a masked result."""
    lines = text.count("\n") + 1
    return f"Old environment output: ({lines} line{'' if lines == 1 else 's'} omitted)"


class _Session:
    def __init__(self, policy: ObservationMasking, resources: Resources) -> None:
        self._arranged = Arranged()
        self.policy = policy
        self._masking = Masking(resources)

    def turn(self, history: History) -> Decision:
        first = max(history.t - self.policy.m, 0)
        masked = self._masking.before(history, first)
        reason = (
            f"results of {counted(len(masked), 'block')} older than the newest {self.policy.m} are masked"
            if first
            else "no turn is old enough"
        )
        return Decision("pass", reason, (*history.head(), *self._arranged(history, masked)))

    def resume(self, decisions: Sequence[Decision]) -> None:
        """What is masked follows from the history."""
