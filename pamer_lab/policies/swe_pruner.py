"""`swe-pruner`: older tool results keep the lines that SWE-Pruner's own model finds relevant; needs its package and
weights, or a server.

`lineprune-lexical` runs anywhere, but is a different method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pamer_lab.looks import LineLook
from pamer_lab.models.pruners import identity, load_swe_pruner, swe_pruner_model, without_swe_pruner
from pamer_lab.policies.interface import Fact, Family, Need, PolicySession, Resources
from pamer_lab.policies.plain import PlainPolicy
from pamer_lab.policies.pruning import PruningSession
from pamer_lab.trajectory.values import Message

QUESTION_CHARACTERS = 2_000
"""Maximum number of characters of the text that replaces the focus question."""


@dataclass(frozen=True)
class SwePruner(PlainPolicy):
    """Runs the package's pruner once on each result."""

    title: ClassVar[str] = "swe-pruner"
    description: ClassVar[str] = "older tool results keep the lines that SWE-Pruner's 0.6B model finds relevant to what the agent asked"
    sources: ClassVar[tuple[str, ...]] = ("Ayanami1314/swe-pruner at afd42ed, package swe-pruner 0.1.1 (MIT)",)
    facts: ClassVar[tuple[Fact, ...]] = (
        ("code", "lines that score at least the threshold stay, and so do gaps of one line; removed runs become (filtered N lines)"),
        ("code", "threshold 0.5 (0.4 in the SWE-bench configuration), chunks that overlap by 50 tokens, 8,192 tokens of model input"),
        ("code", "outputs under 500 characters and failed calls leave the output as it is"),
        ("inferred", "recorded traces have no focus question: the agent's text and the arguments of its call replace it"),
    )
    deviations: ClassVar[tuple[str, ...]] = (
        "the original prunes an output before the agent sees it; here it is pruned when it leaves the newest `keep` blocks, since the "
        "recorded agent saw it in full (keep=0 prunes immediately)",
        "every output is pruned; the original prunes only if the agent attached a question",
    )
    family: ClassVar[Family] = "pruning"
    needs: ClassVar[tuple[Need, ...]] = ("weights",)
    look: ClassVar[LineLook] = LineLook("brown", "longdash")

    threshold: float = field(default=0.5, metadata={"most": 1})
    """Minimum score of a line to be kept."""
    keep: int = 2
    """Number of newest complete blocks whose results are left unchanged."""

    def missing(self) -> str:
        return without_swe_pruner()

    def settings(self, resources: Resources) -> dict[str, Any]:
        return super().settings(resources) | identity(swe_pruner_model())

    def start(self, resources: Resources) -> PolicySession:
        return PruningSession(_Model(self.threshold), self.keep, resources)


class _Model:
    edit = "pruned by SWE-Pruner"

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self.model = identity(swe_pruner_model())["pruner"]

    def learn(self, messages: Sequence[Message]) -> None:
        """Each result is judged by its own call."""

    def prune(self, text: str, messages: Sequence[Message]) -> str:
        action = messages[0]
        question = " ".join([action.content, *(call.arguments for call in action.tool_calls)])[:QUESTION_CHARACTERS]
        return load_swe_pruner(swe_pruner_model())(question, text, self._threshold)[0]
