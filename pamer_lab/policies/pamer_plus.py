"""`pamer+`: compression as in PaMER; only the raw steps that a router names come back (Algorithm 2)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from pamer_lab.controller.recall import Recaller
from pamer_lab.controller.router_index import RouterKind
from pamer_lab.looks import LineLook
from pamer_lab.memory import DetailWriter
from pamer_lab.policies.interface import Need, Offered, Resources
from pamer_lab.policies.pamer_policy import CachedPamerPolicy, Recalls


@dataclass(frozen=True)
class PamerPlus(CachedPamerPolicy):
    """Step-level evidence instead of whole summaries; every selection is kept for audit under the run's id."""

    title: ClassVar[str] = "pamer+"
    recalls: ClassVar[Recalls] = "steps"
    description: ClassVar[str] = "PaMER that restores only the raw steps a router names, each checked and kept for audit"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, Algorithm 2",)
    needs: ClassVar[tuple[Need, ...]] = ("heads", "embedder", "summariser", "router")
    look: ClassVar[LineLook] = LineLook("vermilion", "solid", filled=True, width=2.5)
    offered: ClassVar[Offered] = "first"
    deviations: ClassVar[tuple[str, ...]] = (
        "as for pamer; the embedded profile's router and recall agent are deterministic, the paper asks an LLM router and recall agent",
        "the router sees Recent2, summaries and step details only; router=archive also reads every raw archived block and asks no model, "
        "which the paper's router never does",
        "inject=append puts restored steps after the newest block, each once until the next compression, and gate=priced compresses only "
        "where that pays; the paper does neither",
    )

    router: str = field(default="index", metadata={"choices": ("index", "archive")})
    """What the router sees of archived steps: the index of summaries and step details, or (a deviation) the raw blocks too."""

    def settings(self, resources: Resources) -> dict[str, Any]:
        return super().settings(resources) | {"router": self.router}

    def recaller(self, resources: Resources) -> Recaller:
        return resources.step_recaller(self.controller_settings(resources), cast(RouterKind, self.router))

    def details(self, resources: Resources) -> DetailWriter | None:
        return resources.detail_writer(self.controller_settings(resources))
