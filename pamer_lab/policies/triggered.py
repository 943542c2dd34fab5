"""What policies share that have PaMER's memory and recall and another trigger: they show what the heads' sense of *when* is worth.

No heads vote and no hidden state is read.
"""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from pamer_lab.controller import ControllerSettings
from pamer_lab.controller.trigger import Moment, Trigger
from pamer_lab.decisions import Decision
from pamer_lab.policies.interface import Fact, Need, Offered, Resources
from pamer_lab.policies.pamer_policy import ControlledPolicy, Inject

SHARED_FACTS: tuple[Fact, ...] = (
    ("inferred", "memory, summaries and recall are those of pamer, so that a difference between the two comes from the trigger alone"),
)


@dataclass(frozen=True)
class TriggeredPolicy(ControlledPolicy):
    """Parameters of pamer that concern memory and recall, with its defaults."""

    needs_models: ClassVar[bool] = False
    needs: ClassVar[tuple[Need, ...]] = ("embedder", "summariser")
    offered: ClassVar[Offered] = "asked"

    minimum: int = field(default=1024, kw_only=True)
    """Least tokens of a compression candidate, as in pamer."""
    retained: int = field(default=2, kw_only=True)
    """Newest complete blocks that are never compressed."""
    top: int = field(default=3, kw_only=True, metadata={"least": 1})
    """Summaries recalled at most."""
    inject: str = field(default="front", kw_only=True, metadata={"choices": ("front", "append")})
    """Where recalled memory goes, as in pamer."""

    @property
    def injects(self) -> Inject:
        return "append" if self.inject == "append" else "front"

    def trigger(self) -> Trigger:
        raise NotImplementedError(type(self).__name__)

    def decider(self, resources: Resources) -> Trigger:
        return self.trigger()

    def wanted(self, decision: Decision, moment: Moment) -> bool:
        return self.trigger().ask(moment).edit

    def settings(self, resources: Resources) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return own | {"controller": self.controller_settings(resources).model_dump()} | resources.identity()

    def controller_settings(self, resources: Resources) -> ControllerSettings:
        return ControllerSettings(minimum_candidate_tokens=self.minimum, retained_blocks=self.retained, top_k=self.top, inject=self.injects)
