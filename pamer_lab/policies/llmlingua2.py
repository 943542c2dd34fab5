"""`llmlingua-2`: older tool results lose the words that LLMLingua-2's own classifier drops; needs its package and weights.

`tokenprune-idf` runs anywhere, but is a different method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pamer_lab.looks import LineLook
from pamer_lab.models.frozen import model_name
from pamer_lab.models.pruners import identity, llmlingua_model, load_llmlingua, without_llmlingua
from pamer_lab.policies.interface import Fact, Family, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.policies.pruning import PruningSession
from pamer_lab.trajectory.values import Message


@dataclass(frozen=True)
class LlmLingua2(PlainPolicy):
    """Runs the package's compressor once on each result."""

    title: ClassVar[str] = "llmlingua-2"
    description: ClassVar[str] = "older tool results keep the share of their words that LLMLingua-2's token classifier rates highest"
    sources: ClassVar[tuple[str, ...]] = ("microsoft/LLMLingua, package llmlingua 0.2.2 (MIT)", "LLMLingua-2, arXiv 2403.12968")
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "compress_prompt_llmlingua2: rate 0.5 by default, chunks of 512 tokens that end at a full stop or a line's end"),
        ("code", "its own scripts use a rate of 0.33 and always keep line ends and ? ! ."),
        ("inferred", "no source says when an agent's text is compressed: here each result once, as it leaves the newest blocks"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "only contents of tool results are compressed: the method deletes words and keeps neither roles nor calls",
        "digits=true keeps words with digits (force_reserve_digit), since agents refer to numbers; the package's default is false",
        "results under 500 characters stay",
    )
    family: ClassVar[Family] = "pruning"
    needs: ClassVar[tuple[Need, ...]] = ("weights",)
    look: ClassVar[LineLook] = LineLook("brown", "solid")

    rate: float = field(default=0.5, metadata={"least": 0.05, "most": 1})
    """Share of a result's tokens to keep."""
    keep: int = 2
    """Number of newest complete blocks whose results are left unchanged."""
    digits: bool = True
    """Whether words with digits are always kept."""

    def missing(self) -> str:
        return without_llmlingua()

    def settings(self, resources: Resources) -> dict[str, Any]:
        return super().settings(resources) | identity(llmlingua_model())

    def start(self, resources: Resources) -> PolicySession:
        return PruningSession(_Classifier(self), self.keep, resources)


class _Classifier:
    edit = "compressed by LLMLingua-2"

    def __init__(self, policy: LlmLingua2) -> None:
        self._policy = policy
        self.model = model_name(llmlingua_model())

    def learn(self, messages: Sequence[Message]) -> None:
        """Each result is judged on its own."""

    def prune(self, text: str, messages: Sequence[Message]) -> str:
        return load_llmlingua(llmlingua_model())(text, self._policy.rate, self._policy.digits)
