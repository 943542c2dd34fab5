"""The claims of the paper's compact-context tables, as orderings that a study can confirm or not.

Each claim is a list of pairs, the first above the second in one metric.
Invariant: every claim is true of the published numbers (a test checks it), so a "no" is about the study, not about our reading.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from pamer_lab.analysis.compact import Line, expanded_table
from pamer_lab.studies.study import Study

BANKS = ("bank-recent5", "bank-uniform5", "bank-similarity1", "bank-similarity3", "bank-similarity5", "bank-similarity8")
RECURRENT = ("gru512", "gru512-similarity5")


State = Literal["holds", "does not hold", "not tested"]
"""`holds`: in all of its pairs. `does not hold`: in some pair that was tested. `not tested`: neither, because the two conditions of a
pair read equal blocks at every point, so that the corpus cannot tell them apart."""


@dataclass(frozen=True)
class Claim:
    """One ordering."""

    words: str
    metric: str
    """A cell of the expanded table, such as `compression_auroc`."""
    pairs: tuple[tuple[str, str], ...]
    """(above, below)"""


def _both(words: str, pairs: tuple[tuple[str, str], ...]) -> list[Claim]:
    return [Claim(words, f"{target}_auroc", pairs) for target in ("compression", "recall")]


def _rising(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((later, earlier) for earlier, later in pairwise(names))


CLAIMS: tuple[Claim, ...] = (
    *_both("Full Context is above Recent2", (("full", "recent2"),)),
    Claim("More recent blocks help compression", "compression_auroc", _rising("current", "recent1", "recent2", "recent4")),
    Claim("Recall gains up to Recent2", "recall_auroc", _rising("current", "recent1", "recent2")),
    Claim("Recall gains nothing from Recent4", "recall_auroc", (("recent2", "recent4"),)),
    Claim("Distillation raises Recent2's compression AUROC", "compression_auroc", (("recent2-kd", "recent2"),)),
    Claim("Distillation raises Recent2's compression F1", "compression_f1", (("recent2-kd", "recent2"),)),
    Claim("Distillation lowers Recent2's recall AUROC", "recall_auroc", (("recent2", "recent2-kd"),)),
    Claim("A scalar state adds no compression AUROC", "compression_auroc", (("recent2", "recent2-scalar"), ("recent4", "recent4-scalar"))),
    *_both("More blocks by words help", _rising("raw-top1", "raw-top3", "raw-top5")),
    *_both("More blocks by embedding help", _rising("embedding-top1", "embedding-top3", "embedding-top5")),
    Claim("Raw Top5 reaches Full Context for compression", "compression_auroc", (("raw-top5", "full"),)),
    *_both(
        "Chosen evidence is above chance and recency",
        tuple((one, other) for one in ("raw-top3", "embedding-top3") for other in ("random-top3", "recency-top3")),
    ),
    *_both("Raw Top5 is above Hidden Bank Recent5", (("raw-top5", "bank-recent5"),)),
    *_both("No hidden or recurrent memory reaches Recent2", tuple(("recent2", one) for one in (*BANKS, *RECURRENT))),
    Claim("Recent5 is the best hidden bank for compression", "compression_auroc", tuple((BANKS[0], one) for one in BANKS[1:])),
    Claim("A cap of 8K lowers agreement", "compression_agreement", (("embedding-top3", "embedding-top3-cap8192"),)),
)
"""In the order of the paper."""


def orderings(study: Study) -> list[dict[str, Any]]:
    """Each claim with the differences measured and published, and its `state` here."""
    lines = {line["condition"]: line for line in expanded_table(study)}
    return [found for claim in CLAIMS if (found := _checked(claim, lines))]


def _checked(claim: Claim, lines: dict[str, Line]) -> dict[str, Any] | None:
    """None where the study measured only a part of the claim."""
    pairs = []
    for above, below in claim.pairs:
        if above not in lines or below not in lines:
            return None
        first, second = lines[above], lines[below]
        printed: list[Any] = [(line["published"] or {}).get(claim.metric) for line in (first, second)]
        measured = first[claim.metric] - second[claim.metric]
        published = None if None in printed else round(printed[0] - printed[1], 6)
        tested = not first["reads"] or first["reads"] != second["reads"]
        pairs.append({"above": above, "below": below, "measured": measured, "published": published, "tested": tested})
    asked = [pair for pair in pairs if pair["tested"]]
    kept = sum(pair["measured"] > 0 for pair in asked)
    state: State = "does not hold" if kept < len(asked) else "holds" if len(asked) == len(pairs) else "not tested"
    return {"claim": claim.words, "metric": claim.metric, "state": state, "kept": kept, "of": len(pairs), "pairs": pairs}
