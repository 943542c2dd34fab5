"""A layerwise study -> curves by depth with controls and the paper's curve, and score histograms.

Values are those of the study's rows. Controls are shown only if they use the same corpus and model as the study; a published value has
no interval, only the paper's sd.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pamer_lab.analysis.published import sample_names, sample_study, table
from pamer_lab.probes.margins import Margins
from pamer_lab.studies.study import Study, list_studies, load_study
from pamer_lab.workspace import Workspace

FINAL = "final"
PUBLISHED_BLOCKS = 32
"""Blocks of the paper's model; its curve is placed by relative depth."""
BINS = 31


def layers_of(study: Study) -> list[str]:
    """Layers of a study in the order of depth."""
    return list(dict.fromkeys(str(row["layer"]) for row in study.rows))


def depth(layer: str, blocks: int) -> float:
    """A layer's position: its block number; the state after the final norm is half a step after the last block."""
    return blocks + 0.5 if layer == FINAL else float(layer.rpartition("_")[2])


def blocks_of(study: Study) -> int:
    """The last block among a study's layers."""
    numbers = [int(layer.rpartition("_")[2]) for layer in layers_of(study) if layer != FINAL]
    return max(numbers, default=1)


def preferred_layer(study: Study, target: str) -> str:
    """The layer that validation chose for a target; empty if the study names none."""
    return str((study.notes.get("preferred_layer") or {}).get(target, ""))


def has_metric(study: Study, metric: str) -> bool:
    """Whether any row of a study has a number for a metric."""
    means = [row["metrics"][metric]["mean"] for row in study.rows if metric in row["metrics"]]
    return any(mean is not None and not math.isnan(mean) for mean in means)


def curve(study: Study, target: str, pooling: str, metric: str = "auroc", *, shuffled: bool = False) -> pl.DataFrame:
    """One line of a chart: layer, depth, mean, sd, low, high, n of each layer."""
    blocks = blocks_of(study)
    rows = [
        row
        for row in study.rows
        if row["target"] == target
        and row["pooling"] == pooling
        and (row.get("kind") == "shuffled") == shuffled
        and metric in row["metrics"]
    ]
    return pl.DataFrame(
        [
            {
                "target": target,
                "pooling": pooling,
                "labels": "shuffled" if shuffled else "true",
                "layer": row["layer"],
                "depth": depth(row["layer"], blocks),
                "metric": metric,
                "mean": row["metrics"][metric]["mean"],
                "sd": row["metrics"][metric]["sd"],
                "low": (row["metrics"][metric]["interval"] or [None, None])[0],
                "high": (row["metrics"][metric]["interval"] or [None, None])[1],
                "seeds": len(row["metrics"][metric]["seeds"]),
                "n": row["n"],
                "base_rate": row["base_rate"],
            }
            for row in rows
        ],
        schema_overrides={"low": pl.Float64, "high": pl.Float64},
    )


def all_curves(study: Study, metric: str) -> pl.DataFrame:
    """Every line of one metric, for download."""
    parts = [curve(study, target, pooling, metric) for target in ("compression", "recall") for pooling in ("last", "mean")]
    parts += [curve(study, target, "last", metric, shuffled=True) for target in ("compression", "recall")]
    return pl.concat([part for part in parts if not part.is_empty()])


def published_curve(target: str, pooling: str, blocks: int) -> list[dict[str, Any]]:
    """The paper's AUROC by depth, scaled to a model of `blocks` blocks."""
    found: list[dict[str, Any]] = []
    for row in table("layerwise").rows:
        if row["pooling"].casefold() != pooling or row.get("group"):
            continue
        label = str(row["label"])
        place = blocks + 0.5 if label.startswith("Final") else int(label.rpartition(" ")[2]) / PUBLISHED_BLOCKS * blocks
        if label.startswith("Final") and any(entry["depth"] == place for entry in found):
            continue  # the faithful-hint reference, which is not a linear probe
        found.append({"layer": label, "depth": place, "mean": row[f"{target}_auroc"], "sd": row.get(f"{target}_auroc_sd")})
    return found


def matching_controls(study: Study, workspace: Workspace) -> Study | None:
    """The newest controls of the same corpus and model, or else those of the sample study if they match."""
    for entry in list_studies(workspace):
        if entry["kind"] == "controls" and entry["corpus"] == study.corpus["corpus"] and entry["model"] == study.model:
            return load_study(workspace, entry["study_id"])
    if "controls" in sample_names():
        sample = sample_study("controls")
        if (sample.corpus["corpus"], sample.model) == (study.corpus["corpus"], study.model):
            return sample
    return None


def reference_rows(controls: Study, target: str) -> list[dict[str, Any]]:
    """Controls and rules of a target, strongest first."""
    rows = [row for row in controls.rows if row["target"] == target and row.get("kind") in ("control", "rule")]
    return sorted(rows, key=lambda row: -row["mean"])


def row_of(study: Study, target: str, layer: str, pooling: str) -> dict[str, Any] | None:
    """The row of one probe on true labels."""
    for row in study.rows:
        if (row["target"], row["layer"], row["pooling"]) == (target, layer, pooling) and row.get("kind") != "shuffled":
            return row
    return None


def histogram(seeds: Sequence[Margins]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Edges [B+1] and counts [B] of positives and negatives; zero is an edge, so that no bar straddles the threshold."""
    positive = np.concatenate([seed.positive.astype(np.float64) for seed in seeds])
    negative = np.concatenate([seed.negative.astype(np.float64) for seed in seeds])
    reach = max(np.abs(np.concatenate([positive, negative])).max(), 1e-3)
    step = 2 * reach / BINS
    edges = np.arange(-np.ceil(reach / step), np.ceil(reach / step) + 1) * step
    return edges, np.histogram(positive, edges)[0], np.histogram(negative, edges)[0]
