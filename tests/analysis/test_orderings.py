"""The claims about the paper's tables are true of its numbers; a study is held against them."""

import pytest

from pamer_lab.analysis.compact import published_row
from pamer_lab.analysis.orderings import CLAIMS
from pamer_lab.contexts.registry import all_conditions

LABELS = {one.name: one.label for one in all_conditions()}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.words} ({claim.metric})")
def test_every_claim_holds_in_the_published_tables(claim: object) -> None:
    for above, below in claim.pairs:  # type: ignore[attr-defined]
        first, second = (published_row(name, LABELS[name]) for name in (above, below))
        assert first is not None and second is not None
        assert first[claim.metric] > second[claim.metric], (above, below)  # type: ignore[attr-defined]


def test_every_published_row_has_its_condition() -> None:
    from pamer_lab.analysis.published import table

    found = {row["label"] for name, label in LABELS.items() if (row := published_row(name, label))}
    for name in ("compact", "retrieval", "evidence_caps"):
        missing = {row["label"] for row in table(name).rows} - found - {"Qwen Top3"}
        assert not missing
