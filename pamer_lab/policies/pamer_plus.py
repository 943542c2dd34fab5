"""`pamer+`: compression as in PaMER; only the raw steps that a router names come back (Algorithm 2)."""

from dataclasses import dataclass
from typing import ClassVar

from pamer_lab.controller.recall import Recaller
from pamer_lab.memory import DetailWriter
from pamer_lab.policies.controlled import Controlled, Recalls
from pamer_lab.policies.interface import Resources


@dataclass(frozen=True)
class PamerPlus(Controlled):
    """Step-level evidence instead of whole summaries; every selection is kept for audit under the run's id."""

    title: ClassVar[str] = "pamer+"
    recalls: ClassVar[Recalls] = "steps"
    description: ClassVar[str] = "PaMER that restores only the raw steps a router names, each checked and kept for audit"
    deviations: ClassVar[tuple[str, ...]] = (
        "as for pamer; the embedded profile's router and recall agent are deterministic, the paper asks an LLM router and recall agent",
    )

    def recaller(self, resources: Resources) -> Recaller:
        return resources.step_recaller(self.controller_settings(resources))

    def details(self, resources: Resources) -> DetailWriter | None:
        return resources.detail_writer(self.controller_settings(resources))
