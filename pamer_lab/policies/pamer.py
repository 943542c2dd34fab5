"""`pamer`, `pamer+` and the paper's two ablations: one controller; they differ in what leaves the context and what comes back.

`pamer` (Algorithm 1) recalls the nearest summaries, `pamer+` (Algorithm 2) the raw steps that a router names, `pamer-no-recall`
nothing; `pamer-no-compression` writes and recalls memories, but no raw block leaves the context.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, cast, get_args

from pamer_lab.controller.recall import Recaller, TopSummaries
from pamer_lab.controller.recall_gate import FlareGate, GatedRecall, GateKind, RecallGate, SelfRagGate
from pamer_lab.controller.router_index import RouterKind
from pamer_lab.looks import LineLook
from pamer_lab.memory import DetailWriter
from pamer_lab.policies.interface import Fact, Need, Offered, Resources
from pamer_lab.policies.pamer_policy import CachedPamerPolicy, PamerPolicy, Recalls


@dataclass(frozen=True)
class Pamer(CachedPamerPolicy):
    """The controller as it runs online."""

    title: ClassVar[str] = "pamer"
    description: ClassVar[str] = (
        "five heads vote on compressing older blocks; every later request that does not compress gets the nearest summaries"
    )
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, Algorithm 1",)
    facts: ClassVar[tuple[Fact, ...]] = (
        (
            "paper",
            "from 1,024 tokens of older blocks on, five heads read prefix and Recent2; with three votes, a summary of them is stored",
        ),
        ("paper", "a request that does not compress gets the three summaries nearest to task and Recent2; never both in one request"),
        ("paper", "a summary has at most 1,024 tokens and reads about 40,000 characters"),
        ("code", "FLARE's configuration: a draft of 64 tokens, recall under a probability of 0.8, query without tokens under 0.4, top 2"),
        ("code", "Self-RAG retrieves from 0.2 on its retrieve token; Probing-RAG adds up probes on drafted tokens, threshold 0"),
    )
    look: ClassVar[LineLook] = LineLook("blue", "solid", width=2.5)
    offered: ClassVar[Offered] = "first"
    deviations: ClassVar[tuple[str, ...]] = (
        "the embedded profile reads a small model and writes extractive summaries; the paper reads Qwen3.5-9B and asks it for summaries",
        "inject=append puts recalled summaries after the newest block, each once until the next compression, and gate=priced compresses "
        "only if that pays off; the paper does neither",
        "recall=flare and recall=self-rag ask the chat model before memory is searched, after FLARE (a draft of 64 tokens, recall if one "
        "is less probable than 0.8, those under 0.4 leave the query; FLARE takes two passages, here `top`) and Self-RAG (asked in words: "
        "its retrieve token needs its weights)",
        "recall=probing-rag drafts 16 tokens with the frozen model and adds up one linear probe for each of six layers, from a third to "
        "eight ninths of the depth, after Probing-RAG (gemma-2b's layers 6 to 16, an MLP with two hidden layers, labels from right "
        "answers); ours is fitted on recall labels by `pamer-lab policies --fit-probing-rag TRACES`",
        "logits are also computed at turns where the controller does not ask (logits=all), for what-if; this does not change decisions",
    )

    recall: str = field(default="always", metadata={"choices": get_args(GateKind)})
    """When memory is searched. `always`: at every request that does not compress, as in the paper. `flare`: if a draft of the next action
    has an uncertain token. `self-rag`: if the chat model asks for it. Both cost a chat call at each such request. `probing-rag`: if a probe
    on the states of the frozen model's own draft asks for it; that is local work at every such request."""

    @property
    def asks_chat(self) -> bool:
        return self.recall in ("flare", "self-rag")

    @property
    def reads_drafts(self) -> bool:
        return self.recall == "probing-rag"

    def settings(self, resources: Resources) -> dict[str, Any]:
        # Only what differs from the paper, so that runs with the paper's settings keep their ids.
        gate = {"recall": self.recall} if self.recall != "always" else {}
        return super().settings(resources) | gate | ({"draft_probe": resources.draft_probe.sha256} if self.reads_drafts else {})

    def recaller(self, resources: Resources) -> Recaller | None:
        if self.recall == "always":
            return None
        settings = self.controller_settings(resources)
        summaries = TopSummaries(resources.embedder, k=settings.top_k, query_characters=settings.query_characters)
        return GatedRecall(self._gate(resources, settings.query_characters), summaries)

    def _gate(self, resources: Resources, characters: int) -> RecallGate:
        if self.reads_drafts:
            return resources.draft_gate()
        return FlareGate(resources.chat, characters) if self.recall == "flare" else SelfRagGate(resources.chat, characters)


@dataclass(frozen=True)
class PamerPlus(CachedPamerPolicy):
    """Recalls single steps instead of summaries; every selection is recorded for audit under the run's id."""

    title: ClassVar[str] = "pamer+"
    recalls: ClassVar[Recalls] = "steps"
    description: ClassVar[str] = "PaMER that restores only the raw steps a router selects, each checked and recorded for audit"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, Algorithm 2",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("paper", "compression is Algorithm 1's; a router reads Recent2 and an index of summaries with step details"),
        ("paper", "the steps that it names are checked and restored verbatim; an unknown step is rejected"),
    )
    needs: ClassVar[tuple[Need, ...]] = ("heads", "embedder", "summariser", "router")
    look: ClassVar[LineLook] = LineLook("vermilion", "solid", filled=True, width=2.5)
    offered: ClassVar[Offered] = "first"
    deviations: ClassVar[tuple[str, ...]] = (
        "as for pamer; router and recall agent of the embedded profile are deterministic, while the paper uses an LLM for both",
        "the router sees Recent2, summaries and step details only; router=archive also reads every raw archived block and asks no model, "
        "which the paper's router never does",
        "inject=append puts restored steps after the newest block, each once until the next compression, and gate=priced compresses only "
        "if that pays off; the paper does neither",
    )

    router: str = field(default="index", metadata={"choices": ("index", "archive")})
    """What the router sees of archived steps. `index`: summaries and step details. `archive` (a deviation): the raw blocks too."""

    def settings(self, resources: Resources) -> dict[str, Any]:
        return super().settings(resources) | {"router": self.router}

    def recaller(self, resources: Resources) -> Recaller:
        return resources.step_recaller(self.controller_settings(resources), cast(RouterKind, self.router))

    def details(self, resources: Resources) -> DetailWriter | None:
        return resources.detail_writer(self.controller_settings(resources))


@dataclass(frozen=True)
class PamerNoRecall(PamerPolicy):
    """Memory is written, but never read."""

    title: ClassVar[str] = "pamer-no-recall"
    recalls: ClassVar[Recalls] = ""
    description: ClassVar[str] = "PaMER without recall: compressed blocks are not brought back"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, ablation w/o Recall",)
    facts: ClassVar[tuple[Fact, ...]] = (("paper", "the ablation leaves out recall and keeps compression"),)
    deviations: ClassVar[tuple[str, ...]] = ("as for pamer; in replay the agent cannot search again for what it lost",)


@dataclass(frozen=True)
class PamerNoCompression(PamerPolicy):
    """Recall without compression."""

    title: ClassVar[str] = "pamer-no-compression"
    removes: ClassVar[bool] = False
    description: ClassVar[str] = "PaMER without compression: memories are written and recalled, and the full history stays"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, ablation w/o Compression",)
    facts: ClassVar[tuple[Fact, ...]] = (("paper", "the ablation leaves out compression and has more tokens than the base agent"),)
    deviations: ClassVar[tuple[str, ...]] = (
        "the paper does not say what is recalled when nothing is compressed: here memories are written where PaMER would compress",
        "a request is therefore never shorter than base's, which agrees with the paper (more tokens than the base agent)",
    )
