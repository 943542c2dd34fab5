"""`pamer`: compression by the heads' vote, recall of the nearest summaries (Algorithm 1)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from pamer_lab.controller.recall import Recaller, TopSummaries
from pamer_lab.controller.recall_gate import FlareGate, GatedRecall, GateKind, SelfRagGate
from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Offered, Resources
from pamer_lab.policies.pamer_policy import CachedPamerPolicy


@dataclass(frozen=True)
class Pamer(CachedPamerPolicy):
    """The controller as it runs online."""

    title: ClassVar[str] = "pamer"
    description: ClassVar[str] = (
        "five heads vote on compressing older blocks; every later request that does not compress gets the nearest summaries"
    )
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, Algorithm 1",)
    look: ClassVar[LineLook] = LineLook("blue", "solid", width=2.5)
    offered: ClassVar[Offered] = "first"
    deviations: ClassVar[tuple[str, ...]] = (
        "the embedded profile reads a small model and writes extractive summaries; the paper reads Qwen3.5-9B and asks it for summaries",
        "inject=append puts recalled summaries after the newest block, each once until the next compression, and gate=priced compresses "
        "only where that pays; the paper does neither",
        "recall=flare and recall=self-rag ask the chat model before memory is searched, after FLARE (a draft of 64 tokens, recall if one "
        "is less probable than 0.8, those under 0.4 leave the query) and Self-RAG (asked in words: its retrieve token needs its weights)",
        "logits are also read where the controller does not ask (logits=all), for what-if; decisions are the same without",
    )

    recall: str = field(default="always", metadata={"choices": get_args(GateKind)})
    """Whether memory is searched: at every request that does not compress, as in the paper; `flare`: where a draft of the next action has
    an uncertain token; `self-rag`: where the chat model says so. Both ask the chat model at every such request, which costs a call."""

    @property
    def asks_chat(self) -> bool:
        return self.recall != "always"

    def settings(self, resources: Resources) -> dict[str, Any]:
        # Only what differs from the paper, so that its runs keep their ids.
        return super().settings(resources) | ({"recall": self.recall} if self.asks_chat else {})

    def recaller(self, resources: Resources) -> Recaller | None:
        if not self.asks_chat:
            return None
        settings = self.controller_settings(resources)
        summaries = TopSummaries(resources.embedder, k=settings.top_k, query_characters=settings.query_characters)
        gate = FlareGate if self.recall == "flare" else SelfRagGate
        return GatedRecall(gate(resources.chat, settings.query_characters), summaries)
