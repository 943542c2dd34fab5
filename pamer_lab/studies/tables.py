"""Logits of all seeds -> one row of a table, in the same form for probes, controls and rules.

A row's `mean`, `sd`, `seeds` and `interval` are those of AUROC, the primary metric; `metrics` has all metrics. `n` is the number of
labelled decisions in the corpus, `test_n` the number in each seed's test set, `margins` the test scores (`margins.py`).
Invariant: thresholds come from validation rows, numbers from test rows, and every row of a study uses the same splits.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pamer_lab.probes.margins import pack
from pamer_lab.probes.metrics import RESAMPLES, Scored, auroc, best_thresholds, sign_flip, summarise
from pamer_lab.probes.split import TEST, VALIDATION, Split
from pamer_lab.studies.decisions import TARGETS, Bools, Decisions

Row = dict[str, Any]


def make_row(
    decisions: Decisions,
    splits: Sequence[Split],
    target: int,
    logits: npt.NDArray[Any],
    names: dict[str, Any],
    *,
    labels: Bools | None = None,
    threshold: float | None = None,
    resamples: int = RESAMPLES,
) -> Row:
    """A row from logits [S, n]; `labels` [S, n] replace those of the corpus, `threshold` is a fixed threshold for rules."""
    asked, questions = decisions.counts[target], decisions.question_numbers
    y = decisions.labels[target][None].repeat(len(splits), 0) if labels is None else labels
    cuts = thresholds_of(decisions, splits, target, logits, y) if threshold is None else np.full(len(splits), threshold)
    tests = [split.rows(TEST) & asked for split in splits]
    scored = [Scored(logits[number, test], y[number, test], questions[test], float(cuts[number])) for number, test in enumerate(tests)]
    metrics = summarise(scored, resamples)
    primary = metrics["auroc"]
    return {
        **names,
        "target": TARGETS[target],
        "mean": primary["mean"],
        "sd": primary["sd"],
        "seeds": primary["seeds"],
        "interval": primary["interval"],
        "n": int(asked.sum()),
        "test_n": [int(test.sum()) for test in tests],
        "base_rate": float(y[0, asked].mean()),
        "thresholds": [float(cut) for cut in cuts],
        "validation_auroc": float(validation_auroc(decisions, splits, target, logits, y).mean()),
        "metrics": metrics,
        "margins": pack(scored),
    }


def thresholds_of(
    decisions: Decisions, splits: Sequence[Split], target: int, logits: npt.NDArray[Any], labels: Bools | None = None
) -> npt.NDArray[np.float64]:
    """[..., S, n] -> [..., S]: each seed's threshold with the best validation F1, on the logit scale."""
    return _on_validation(best_thresholds, decisions, splits, target, logits, labels)


def validation_auroc(
    decisions: Decisions, splits: Sequence[Split], target: int, logits: npt.NDArray[Any], labels: Bools | None = None
) -> npt.NDArray[np.float64]:
    """[..., S, n] -> [..., S]: the criterion for choosing layers."""
    return _on_validation(auroc, decisions, splits, target, logits, labels)


def _on_validation(
    measure: Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[np.float64]],
    decisions: Decisions,
    splits: Sequence[Split],
    target: int,
    logits: npt.NDArray[Any],
    labels: Bools | None,
) -> npt.NDArray[np.float64]:
    found = []
    for number, split in enumerate(splits):
        rows = split.rows(VALIDATION) & decisions.counts[target]
        y = decisions.labels[target] if labels is None else labels[number]
        found.append(measure(logits[..., number, rows], y[rows]))
    return np.stack(found, -1)


def compare(first: Row, second: Row, metric: str = "auroc") -> Row:
    """A paired comparison of two rows of the same target: mean difference over seeds and its exact sign-flip p."""
    values = [row["metrics"][metric]["seeds"] for row in (first, second)]
    differences = [float(one - other) for one, other in zip(*values, strict=True)]
    return {
        "comparison": f"{first['name']} - {second['name']}",
        "target": first["target"],
        "metric": metric,
        "mean": float(np.mean(differences)),
        "sd": float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0,
        "seeds": differences,
        "n": first["n"],
        "p": sign_flip(differences),
    }
