"""`random-when` and `threshold-when`: PaMER's memory and recall with another trigger, to show what the heads' timing is worth.

No heads vote, and no hidden state is read.
"""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, cast

from pamer_lab.controller import ControllerSettings
from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.trigger import Measure, Moment, RandomTrigger, ThresholdTrigger, Trigger
from pamer_lab.decisions import Decision
from pamer_lab.looks import LineLook
from pamer_lab.memory import DetailWriter
from pamer_lab.policies.interface import Fact, Need, Offered, Resources
from pamer_lab.policies.pamer_policy import ControlledPolicy, Inject, Recalls

SHARED_FACTS: tuple[Fact, ...] = (
    ("inferred", "memory, summaries and recall are those of pamer, so that a difference between the two comes from the trigger alone"),
)


@dataclass(frozen=True)
class TriggeredPolicy(ControlledPolicy):
    """`pamer`'s parameters for memory and recall, with its defaults."""

    needs_models: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = ("embedder", "summariser")
    offered: ClassVar[Offered] = "asked"

    minimum: int = field(default=1024, kw_only=True)
    """Minimum size of a compression candidate in tokens, as in pamer."""
    retained: int = field(default=2, kw_only=True)
    """Number of newest complete blocks that are never compressed."""
    top: int = field(default=3, kw_only=True, metadata={"least": 1})
    """Maximum number of summaries recalled."""
    inject: str = field(default="front", kw_only=True, metadata={"choices": ("front", "append")})
    """Where recalled memory goes, as in pamer."""

    returns: str = field(default="summaries", kw_only=True, metadata={"choices": ("summaries", "steps")})
    """What is recalled from memory: the nearest summaries, as in pamer; or chosen steps, as in pamer+."""

    @property
    def injects(self) -> Inject:
        return "append" if self.inject == "append" else "front"

    @property
    def returned(self) -> Recalls:
        return "steps" if self.returns == "steps" else "summaries"

    def trigger(self) -> Trigger:
        raise NotImplementedError(type(self).__name__)

    def decider(self, resources: Resources) -> Trigger:
        return self.trigger()

    @property
    def moments(self) -> str:
        return repr(self.trigger())

    def recaller(self, resources: Resources) -> Recaller | None:
        return resources.step_recaller(self.controller_settings(resources), "index") if self.returns == "steps" else None

    def details(self, resources: Resources) -> DetailWriter | None:
        return resources.detail_writer(self.controller_settings(resources)) if self.returns == "steps" else None

    def wanted(self, decision: Decision, moment: Moment) -> bool:
        return self.trigger().ask(moment).edit

    def settings(self, resources: Resources) -> dict[str, Any]:
        # Only what differs from pamer's recall, so that earlier runs keep their ids.
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "returns" or self.returns != field.default}
        return own | {"controller": self.controller_settings(resources).model_dump()} | resources.identity()

    def controller_settings(self, resources: Resources) -> ControllerSettings:
        return ControllerSettings(minimum_candidate_tokens=self.minimum, retained_blocks=self.retained, top_k=self.top, inject=self.injects)


@dataclass(frozen=True)
class RandomWhen(TriggeredPolicy):
    """Draws from seed, session and turn, so that a run resumed after a crash draws the same."""

    title: ClassVar[str] = "random-when"
    description: ClassVar[str] = "PaMER's memory and recall; whether older blocks are compressed is drawn at random, with a fixed chance"
    sources: ClassVar[tuple[str, ...]] = ("our own control: what the heads' choice of the moment is worth",)
    facts: ClassVar[tuple[Fact, ...]] = (
        *SHARED_FACTS,
        (
            "inferred",
            "the chance applies at turns where pamer would ask its heads; 0.2 is near the rate of the packaged heads on the museum demo",
        ),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "no original to deviate from; for an equal frequency, set the rate to the compressions of a pamer run divided by its turns with a "
        "candidate of the minimum size",
    )
    look: ClassVar[LineLook] = LineLook("blue", "dash")

    rate: float = field(default=0.2, metadata={"most": 1})
    """Probability of a compression at a turn whose candidate has the minimum size. 0: never; 1: always."""
    seed: int = 0
    """Seed of the draws; a different seed compresses at different turns."""

    def trigger(self) -> Trigger:
        return RandomTrigger(self.rate, self.seed)


@dataclass(frozen=True)
class ThresholdWhen(TriggeredPolicy):
    """Compresses by size, as most agent programs do."""

    title: ClassVar[str] = "threshold-when"
    description: ClassVar[str] = "PaMER's memory and recall; older blocks are compressed as soon as they exceed T tokens"
    sources: ClassVar[tuple[str, ...]] = ("our own control: what the heads' choice of the moment is worth",)
    facts: ClassVar[tuple[Fact, ...]] = (
        *SHARED_FACTS,
        ("inferred", "4,096 is close to the largest candidates that the packaged heads compress on the museum demo"),
    )
    deviations: ClassVar[tuple[str, ...]] = ("no original to deviate from",)
    look: ClassVar[LineLook] = LineLook("blue", "dot")

    tokens: int = field(default=4_096, metadata={"least": 1})
    """Size in tokens from which older blocks are compressed."""
    of: str = field(default="candidate", metadata={"choices": ("candidate", "context")})
    """What is counted: the older blocks that could be compressed, or the request with its tools and without recalled memory."""

    def trigger(self) -> Trigger:
        return ThresholdTrigger(self.tokens, cast(Measure, self.of))
