"""`pamer`: compression by the heads' vote, recall of the nearest summaries (Algorithm 1)."""

from dataclasses import dataclass
from typing import ClassVar

from pamer_lab.looks import LineLook
from pamer_lab.policies.interface import Offered
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
        "logits are also read where the controller does not ask (logits=all), for what-if; decisions are the same without",
    )
