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
    """Forgets what tools returned, but remembers what was done."""

    title: ClassVar[str] = "observation-masking"
    description: ClassVar[str] = "tool results older than the newest M turns become one line; calls and the agent's words stay"
    sources: ClassVar[tuple[str, ...]] = (
        "The Complexity Trap, arXiv 2508.21433, and its code",
        "SWE-agent/SWE-agent, sweagent/agent/history_processors.py, LastNObservations",
    )
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "observations older than a window of M = 10 turns are replaced by a placeholder; reasoning and actions stay"),
        ("code", "the placeholder says how many lines were left out; the first observation, which contains the task, always stays"),
        ("code", "SWE-agent's own configuration has n = 5; with `polling` = p the number masked changes only every p turns, for the cache"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "a result that the placeholder would not shorten is kept",
        "in traces without tool messages the environment's user messages are the results",
    )
    family: ClassVar[Family] = "host"
    look: ClassVar[LineLook] = LineLook("green", "dash")

    m: int = field(default=10, metadata={"least": 1})
    """Number of newest turns whose results are kept."""
    every: int = field(default=1, metadata={"least": 1})
    """Number of turns after which more results are masked (SWE-agent's `polling`); in between, the prompt's beginning stays the same."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class Masking:
    """Blocks with masked results, where masking makes them shorter."""

    def __init__(self, resources: Resources) -> None:
        self._shortened = Shortened(resources.tokens)
        self._items: dict[int, Item] = {}
        self._done = 0

    def before(self, history: History, last: int) -> dict[int, Item]:
        """Masked items of the blocks before `last`, which never decreases."""
        for block in range(self._done, last):
            messages = history.block_messages(block)
            texts = {place: placeholder(messages[place].content) for place in self._shortened.results.of(history, block)}
            item = self._shortened.block(history, block, MASKED, texts)
            if item is not None:
                self._items[block] = item
        self._done = max(self._done, last)
        return self._items


def placeholder(text: str) -> str:
    """The text in place of a masked result."""
    return f"Old environment output: ({len(text.splitlines())} lines omitted)"


class _Session:
    def __init__(self, policy: ObservationMasking, resources: Resources) -> None:
        self._arranged = Arranged()
        self.policy = policy
        self._masking = Masking(resources)

    def turn(self, history: History) -> Decision:
        m, every = self.policy.m, self.policy.every
        # The count includes the first observation, which contains the task and is never masked.
        first = max((history.t + 1) // every * every - 1 - m, 0)
        masked = self._masking.before(history, first)
        reason = f"results of {counted(len(masked), 'block')} older than the newest {m} are masked" if first else "no turn is old enough"
        return Decision("pass", reason, (*history.head(), *self._arranged(history, masked)))

    def resume(self, decisions: Sequence[Decision]) -> None:
        """What is masked follows from the history."""
