"""`random-when`: PaMER's memory and recall, compressing at random points with a given frequency."""

from dataclasses import dataclass, field
from typing import ClassVar

from pamer_lab.controller.trigger import RandomTrigger, Trigger
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Fact
from pamer_lab.policies.triggered import SHARED_FACTS, TriggeredPolicy


@dataclass(frozen=True)
class RandomWhen(TriggeredPolicy):
    """A draw from seed, session and turn decides, so that a run that goes on after a crash draws the same."""

    title: ClassVar[str] = "random-when"
    description: ClassVar[str] = "PaMER's memory and recall; whether older blocks are compressed is drawn at random, with a fixed chance"
    sources: ClassVar[tuple[str, ...]] = ("our own control: what the heads' choice of the moment is worth",)
    facts: ClassVar[tuple[Fact, ...]] = (
        *SHARED_FACTS,
        (
            "inferred",
            "the chance counts at turns where pamer would ask its heads; 0.2 is near what the packaged heads do on the museum demo",
        ),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "no original to deviate from; for an equal frequency set the rate to compressions by turns with a candidate of the minimum size, "
        "from a run of pamer",
    )
    look: ClassVar[LineLook] = LineLook("blue", "dash")

    rate: float = field(default=0.2, metadata={"most": 1})
    """Chance of a compression at a turn whose candidate has the minimum size. 0: never; 1: always."""
    seed: int = 0
    """Another seed draws other points."""

    def trigger(self) -> Trigger:
        return RandomTrigger(self.rate, self.seed)
