"""`threshold-when`: PaMER's memory and recall, compressing at a fixed number of tokens."""

from dataclasses import dataclass, field
from typing import ClassVar, cast

from pamer_lab.controller.trigger import Measure, ThresholdTrigger, Trigger
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact
from pamer_lab.policies.triggered import SHARED_FACTS, TriggeredPolicy


@dataclass(frozen=True)
class ThresholdWhen(TriggeredPolicy):
    """A size decides, as in most agent programs."""

    title: ClassVar[str] = "threshold-when"
    description: ClassVar[str] = "PaMER's memory and recall; older blocks are compressed as soon as there are so many tokens of them"
    sources: ClassVar[tuple[str, ...]] = ("our own control: what the heads' choice of the moment is worth",)
    facts: ClassVar[tuple[Fact, ...]] = (
        *SHARED_FACTS,
        ("inferred", "4,096 is near the largest candidates that the packaged heads compress on the museum demo"),
    )
    deviations: ClassVar[tuple[str, ...]] = ("no original to deviate from",)
    look: ClassVar[LineLook] = LineLook("blue", "dot")

    tokens: int = field(default=4_096, metadata={"least": 1})
    """Tokens from which on older blocks are compressed."""
    of: str = field(default="candidate", metadata={"choices": ("candidate", "context")})
    """What is counted: the older blocks that could be compressed, or the request with its tools and without recalled memory."""

    def trigger(self) -> Trigger:
        return ThresholdTrigger(self.tokens, cast(Measure, self.of))
