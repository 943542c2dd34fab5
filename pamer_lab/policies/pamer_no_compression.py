"""`pamer-no-compression`: memories are written and recalled as in PaMER, but no raw block leaves the context."""

from dataclasses import dataclass
from typing import ClassVar

from pamer_lab.policies.pamer_policy import PamerPolicy


@dataclass(frozen=True)
class PamerNoCompression(PamerPolicy):
    """Recall alone."""

    title: ClassVar[str] = "pamer-no-compression"
    removes: ClassVar[bool] = False
    description: ClassVar[str] = "PaMER without compression: memories are written and recalled, and the full history stays"
    sources: ClassVar[tuple[str, ...]] = ("PaMER paper, ablation w/o Compression",)
    deviations: ClassVar[tuple[str, ...]] = (
        "the paper does not say what is recalled when nothing is compressed: here memories are written where PaMER would compress",
        "so a request is never shorter than base's, which fits the paper's row (more tokens than the base agent)",
    )
