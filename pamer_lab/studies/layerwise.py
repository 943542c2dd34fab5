"""The layerwise study: one linear probe per layer, pooling, target and seed, trained as one grid (Appendix A.5).

In addition, the same probes on last-token states with shuffled labels (`kind` is `shuffled`): what the protocol finds at a layer
without any signal.
"""

from collections.abc import Sequence

import numpy as np

from pamer_lab.probes.circle import States
from pamer_lab.probes.grid import GridResult, train_grid
from pamer_lab.probes.metrics import RESAMPLES
from pamer_lab.probes.readout import Capacity, Floats
from pamer_lab.probes.split import PARTS, Split
from pamer_lab.probes.training import GridData, Training
from pamer_lab.studies.bank import Bank
from pamer_lab.studies.decisions import TARGETS, Bools, Decisions
from pamer_lab.studies.tables import Row, make_row, validation_auroc


def fit_probes(
    decisions: Decisions,
    splits: Sequence[Split],
    features: Floats | States,
    capacity: Capacity = "linear",
    *,
    teacher: Floats | None = None,
    training: Training | None = None,
    device: str = "cpu",
) -> GridResult:
    """Probes for both targets and all seeds on feature sets [F, n, d]."""
    labels = np.repeat(decisions.labels[:, None], len(splits), 1)
    return train_grid(GridData(features, labels, decisions.counts, tuple(splits), teacher), capacity, training, device)


def layerwise(decisions: Decisions, splits: Sequence[Split], bank: Bank, *, device: str = "cpu", resamples: int = RESAMPLES) -> list[Row]:
    """One row per target, layer and pooling, then one on shuffled labels per target and layer."""
    poolings = len(bank.poolings)
    fitted = fit_probes(decisions, splits, bank.sets(), device=device)
    shared = {"context": bank.context, "hint": bank.hint, "capacity": "linear"}
    rows: list[Row] = []
    for target in range(len(TARGETS)):
        for number, layer in enumerate(bank.layers):
            for place, pooling in enumerate(bank.poolings):
                logits = fitted.logits[number * poolings + place, target]
                own = {"name": f"{layer} {pooling}", "layer": layer, "pooling": pooling}
                rows.append(make_row(decisions, splits, target, logits, own | shared, resamples=resamples))
    return [*rows, *_shuffled_rows(decisions, splits, bank, shared, device, resamples)] if "last" in bank.poolings else rows


def shuffled_labels(decisions: Decisions, splits: Sequence[Split], target: int) -> Bools:
    """Labels [S, n] of a target, shuffled for each seed among the labelled decisions of each split.

    Every part keeps its number of positives, so the control differs from the probe only in the assignment of labels.
    """
    labels = np.repeat(decisions.labels[target][None], len(splits), 0)
    for number, split in enumerate(splits):
        order = np.random.default_rng([split.seed, target])
        for part in range(len(PARTS)):
            rows = np.flatnonzero(decisions.counts[target] & split.rows(part))
            labels[number, rows] = order.permutation(labels[number, rows])
    return labels


def _shuffled_rows(
    decisions: Decisions, splits: Sequence[Split], bank: Bank, shared: dict[str, str], device: str, resamples: int
) -> list[Row]:
    labels = np.stack([shuffled_labels(decisions, splits, target) for target in range(len(TARGETS))])  # [T, S, n]
    fitted = train_grid(GridData(bank.sets(poolings=["last"]), labels, decisions.counts, tuple(splits)), "linear", device=device)
    return [
        make_row(
            decisions,
            splits,
            target,
            fitted.logits[number, target],
            {"name": f"{layer} last, shuffled labels", "kind": "shuffled", "layer": layer, "pooling": "last"} | shared,
            labels=labels[target],
            resamples=resamples,
        )
        for target in range(len(TARGETS))
        for number, layer in enumerate(bank.layers)
    ]


def preferred_layer(rows: Sequence[Row], target: str, pooling: str = "last") -> str:
    """The layer with the best mean validation AUROC; test numbers play no part."""
    own = [row for row in rows if row["target"] == target and row["pooling"] == pooling and row.get("kind") != "shuffled"]
    return str(max(own, key=lambda row: row["validation_auroc"])["layer"])


def preferred_of(decisions: Decisions, splits: Sequence[Split], target: int, logits: Floats, layers: Sequence[str]) -> str:
    """The same choice from logits [layers, S, n]."""
    return layers[int(validation_auroc(decisions, splits, target, logits).mean(-1).argmax())]
