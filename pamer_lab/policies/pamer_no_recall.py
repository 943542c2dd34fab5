"""`pamer-no-recall`: compression as in PaMER, and nothing ever comes back (the paper's "w/o Recall")."""

from dataclasses import dataclass
from typing import ClassVar

from pamer_lab.policies.pamer_policy import PamerPolicy, Recalls


@dataclass(frozen=True)
class PamerNoRecall(PamerPolicy):
    """Memory is written and never read."""

    title: ClassVar[str] = "pamer-no-recall"
    recalls: ClassVar[Recalls] = ""
    description: ClassVar[str] = "PaMER without recall: compressed blocks stay away"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, ablation w/o Recall",)
    deviations: ClassVar[tuple[str, ...]] = ("as for pamer; in replay the agent cannot search again for what it lost",)
