"""`comem:K`: CoMem's schedule: every K steps a summary of all steps so far is started, and used from the next step on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact, Family, History, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy, SummarySession


@dataclass(frozen=True)
class CoMem(PlainPolicy):
    """The memory works while the agent acts, so each summary comes one step late."""

    title: ClassVar[str] = "comem"
    description: ClassVar[str] = (
        "every K steps a new summary of all steps so far is written in parallel with the agent and used one step later"
    )
    sources: ClassVar[tuple[str, ...]] = ("CoMem, horizon-llm/CoMem",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "at step s with (s + 1) mod k = 0 and s > 0 a summary of all steps so far is started; k = 4 in the evaluation scripts"),
        ("code", "each summary is written again from all steps"),
        ("code", "the memory model writes up to 2,048 tokens at temperature 0"),
        (
            "code",
            "until the first summary the history is complete; then the request has task, summary and the steps that it does not cover",
        ),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "only CoMem's schedule: a prompted model replaces the trained 4B memory model, and summaries have 1,024 tokens",
        "task, summary and steps stay separate messages; the optimised schedule that waits one more window is left out",
        "a source over about 40,000 characters is clipped, as for all summaries here; once a message would keep fewer than 120 characters "
        "of it (from 334 messages on), a summary is written from the last one's text and the new steps",
    )
    family: ClassVar[Family] = "method"
    needs: ClassVar[tuple[Need, ...]] = ("summariser",)
    look: ClassVar[LineLook] = LineLook("black", "dash")

    k: int = field(default=4, metadata={"least": 2})
    """Number of steps between two summaries."""

    def start(self, resources: Resources) -> PolicySession:
        return _Session(self, resources)


class _Session(SummarySession):
    def __init__(self, policy: CoMem, resources: Resources) -> None:
        super().__init__(resources)
        self.policy = policy

    def due(self, history: History) -> tuple[list[int], str]:
        """The summary started at the previous step, over the blocks before that step."""
        k, started = self.policy.k, history.t - 1
        if started <= 0 or (started + 1) % k:
            return [], f"no summary was started at the last step; the next one starts at step {_next(history.t, k)}"
        waiting = self.waiting(history, started)
        return waiting, f"the summary started at step {started} is ready" if waiting else "the last step had nothing new to summarise"

    def rereads(self, history: History, blocks: Sequence[int]) -> bool:
        return self.fits_source(history, blocks)


def _next(step: int, k: int) -> int:
    """The first step from `step` on at which a summary is started."""
    return max(step + (-(step + 1)) % k, k - 1)
