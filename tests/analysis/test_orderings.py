"""The claims about the paper's tables are true of its numbers; a study is checked against them."""

from dataclasses import replace
from pathlib import Path

import pytest

from pamer_lab.analysis.compact import CLAIMS, orderings, published_row
from pamer_lab.studies.compact.registry import all_conditions
from pamer_lab.studies.study import read_study

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "compact-study.json"
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


def named(metric: str, above: str, below: str) -> tuple[str, str]:
    """The key of the one claim about this pair of conditions."""
    (claim,) = [claim for claim in CLAIMS if claim.metric == metric and (above, below) in claim.pairs]
    return claim.words, metric


def test_a_claim_is_not_tested_where_both_sides_read_the_same_and_fails_by_a_tested_pair_alone() -> None:
    study = read_study(FIXTURE)
    found = {(row["claim"], row["metric"]): row for row in orderings(study)}
    cap = found[named("compression_agreement", "embedding-top3", "embedding-top3-cap8192")]
    assert (cap["state"], cap["kept"], cap["of"]) == ("not tested", 0, 1)
    claim = named("recall_auroc", "raw-top3", "raw-top1")
    for reads, values, state in (
        ("abc", (0.5, 0.6, 0.7), "holds"),
        ("abc", (0.5, 0.7, 0.6), "does not hold"),
        ("aab", (0.5, 0.5, 0.6), "not tested"),
        ("aab", (0.6, 0.6, 0.5), "does not hold"),
    ):
        changed = {f"raw-top{k}": (own, value) for k, own, value in zip((1, 3, 5), reads, values, strict=True)}
        rows = [
            row
            | {
                "reads": changed[row["condition"]][0],
                "metrics": row["metrics"] | {"auroc": {"mean": changed[row["condition"]][1], "sd": 0}},
            }
            if row["condition"] in changed
            else row
            for row in study.rows
        ]
        again = {(row["claim"], row["metric"]): row for row in orderings(replace(study, rows=rows))}
        assert again[claim]["state"] == state
