"""The paper's study tables next to a study of this workspace, cell by cell.

Knows which published and measured rows correspond. A cell is listed only if both sides have it, the measured side with its sd and
number of seeds. Agreement is not judged, because models and traces differ.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pamer_lab.analysis.growth import policy_table
from pamer_lab.analysis.published import PublishedTable, table
from pamer_lab.analysis.signals import PUBLISHED_BLOCKS, blocks_of
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Kind, Study

KINDS: dict[str, Kind] = {
    "signals": "controls",
    "controls": "controls",
    "layerwise": "layerwise",
    "capacity_hint": "train",
    "full_context_reference": "train",
    "compact": "compact",
    "compact_main": "compact",
    "retrieval": "compact",
    "evidence_caps": "compact",
}
"""Published table -> the kind of study that measures the same quantities."""
CONTROLS = {"Length / Turn": "Length + turn", "Metadata": "Length + turn + tool type", "Hidden (Linear)": "Hidden state, final (linear)"}
CONDITIONS = {
    "+ Decision KD": "recent2-kd",
    "Hidden Bank": "bank-recent5",
    "Selective Raw": "raw-top5",
    "Qwen Retrieval": "embedding-top3",
    "Top3 cap 8K": "embedding-top3-cap8192",
    "Top3 cap 16K": "embedding-top3-cap16384",
    "Top3 uncapped": "embedding-top3",
}
"""Names in the paper's shorter tables -> conditions."""
POLICIES: dict[str, dict[str, str]] = {
    "full_benchmark": {"+ PaMER": "pamer", "+ PaMER+": "pamer+"},
    "method_comparison": {
        "+ PaMER": "pamer",
        "+ PaMER+": "pamer+",
        "Sliding Window (K=5)": "sliding-window:5",
        "Sliding Window (K=10)": "sliding-window:10",
        "Sliding Window (K=20)": "sliding-window:20",
        "Periodic Summary (n=3)": "periodic-summary:3",
        "Periodic Summary (n=5)": "periodic-summary:5",
    },
    "ablation": {"PaMER": "pamer", "w/o Recall": "pamer-no-recall", "w/o Compression": "pamer-no-compression"},
}
"""Published table -> its rows and the policies here to compare them with (token changes only)."""
LIVE = ("method_comparison", "ablation")
"""Tables of live runs that a policy's verdict quotes: the methods on the same 40 tasks first, then the ablations."""
BASES = ("DeepSeek-V4-Flash", "Base agent")
"""Published rows of the base agent, which changes are relative to."""
BENCHMARK = "workbuddy-bench-proxy"
"""Trace format of the paper's benchmark."""
DOMAINS = ("code", "office", "security", "web")
METRICS = ("auroc", "auprc", "f1", "agreement")

Line = dict[str, Any]
"""`row`, `here` (its name in the study), `target`, `metric`, `published`, `measured`, `sd`, `seeds`."""


def comparison(name: str, study: Study) -> list[Line]:
    """All cells of a published table that a study measured too."""
    lines: list[Line] = []
    for row in _rows(table(name)):
        for target, metric, value in _cells(row):
            own = _measured_row(name, study, row, target)
            cell = _value(own, metric) if own else None
            if own and cell:
                label = f"{row['label']}, {row['pooling'].casefold()}" if row.get("pooling") else str(row["label"])
                lines.append({"row": label, "here": own["name"], "target": target, "metric": metric, "published": value} | cell)
    return lines


def token_changes(published: PublishedTable, runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Token changes of published methods and of the same policies over these runs; empty for a table without comparable policies.

    Each line has `row`, `tokens`, `published_pct` (as printed), `policy`, `measured_pct` (None without a run), `traces` and `demo`.
    """
    base = next((row for row in published.rows if row["label"] in BASES), None)
    here = {row["policy"]: row for row in policy_table(runs).to_dicts()}
    lines = []
    for label, policy in POLICIES.get(published.name, {}).items():
        row, own = published.row(label), here.get(policy)
        lines.append(
            {
                "row": label,
                "tokens": row["tokens"],
                "published_pct": row.get("tokens_change_pct", 100 * (row["tokens"] / base["tokens"] - 1) if base else None),
                "policy": policy,
                "measured_pct": -own["reduction_pct"] if own else None,
                "traces": own["traces"] if own else 0,
                "demo": bool(own and own["demo"]),
            }
        )
    return lines


def recorded_comparison(published: PublishedTable, scores: Mapping[str, Any]) -> dict[str, Any] | None:
    """The base agent's published score and tokens next to `recorded_scores` of this workspace's benchmark traces; None for other tables.

    Scores are 0 to 100; `domains` has each published domain with both. A replay changes neither: both are what sources recorded.
    """
    base = next((row for row in published.rows if row["label"] in BASES and "tokens" in row), None)
    if base is None or not scores["tasks"]:
        return None
    own = {name.casefold(): one for name, one in scores["domains"].items()}
    return {
        "row": base["label"],
        "score": base["average"] if "average" in base else 100 * base["reward"],
        "tokens": base["tokens"],
        "recorded_score": scores["task_weighted"],
        "recorded_tokens": scores["tokens_per_trace"],
        "tasks": scores["tasks"],
        "traces": scores["traces"],
        "usage_traces": scores["usage_traces"],
        "domains": {name: {"score": base[name], "recorded": own.get(name)} for name in DOMAINS if name in base},
    }


def live_result(policy: str) -> dict[str, Any] | None:
    """What the paper measured in live runs of a policy, against its base agent; None for a policy or parameters it did not run.

    `tokens_pct` is the change of tokens per task, `points` that of the score (0 to 100); `row`, `table` and `place` say where it is from.
    """
    for name in LIVE:
        published = table(name)
        label = next((label for label, own in POLICIES[name].items() if own == policy), None)
        if label is None:
            continue
        row, base = published.row(label), next(row for row in published.rows if row["label"] in BASES)
        printed = row.get("tokens_change_pct")
        points = row["average_change"] if "average_change" in row else 100 * (row["reward"] - base["reward"])
        return {
            "kind": "published",
            "policy": policy,
            "row": label,
            "table": name,
            "place": published.place,
            "tokens_pct": 100 * (row["tokens"] / base["tokens"] - 1) if printed is None else printed,
            "points": points,
        }
    return None


def _rows(published: PublishedTable) -> Iterator[dict[str, Any]]:
    """Rows that are measured the same way here: the layer table ends with a separate reference, which is not a linear probe."""
    for row in published.rows:
        if published.name != "layerwise" or not row.get("group"):
            yield row


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Target, metric and value of a published row; the target is empty if a value belongs to both."""
    own = next((target for target in TARGETS if target in (str(row.get("group", "")).casefold(), row["label"].casefold())), "")
    for key, value in row.items():
        if not isinstance(value, int | float):
            continue
        target, _, metric = key.partition("_")
        if target in TARGETS and (metric in METRICS or not metric):
            yield target, metric or "auroc", float(value)
        elif key in METRICS and own:
            yield own, key, float(value)
        elif key == "tokens_pct" or key in ("tokens_mean", "tokens_p95", "tokens_max"):
            yield "", key, float(value)


def _measured_row(name: str, study: Study, row: dict[str, Any], target: str) -> dict[str, Any] | None:
    wanted = {"target": target or TARGETS[0]} | _names(name, study, row)
    for own in study.rows:
        if own.get("kind") != "shuffled" and all(own.get(key) == value for key, value in wanted.items()):
            return own
    return None


def _names(name: str, study: Study, row: dict[str, Any]) -> dict[str, str]:
    """The fields that identify the study's row for a published one."""
    label = str(row["label"])
    if KINDS[name] == "controls":
        return {"name": CONTROLS.get(label, label)}
    if name == "layerwise":
        number = label.rpartition(" ")[2]
        block = f"block_{max(1, round(int(number) / PUBLISHED_BLOCKS * blocks_of(study)))}" if number.isdigit() else "final"
        return {"layer": block, "pooling": str(row["pooling"]).casefold()}
    if KINDS[name] == "train":
        return {"name": f"{label} (final)" if name == "capacity_hint" else "Faithful hint, MLP (final)"}
    if label in CONDITIONS:
        return {"condition": CONDITIONS[label]}
    return {"name": label.replace("Qwen ", "Embedding ")}


def _value(row: dict[str, Any], metric: str) -> dict[str, Any] | None:
    if metric == "tokens_pct":
        return {"measured": row["tokens_pct"], "sd": None, "seeds": 0}
    if metric.startswith("tokens_"):
        sizes = row.get("evidence_tokens")
        return {"measured": sizes[metric.removeprefix("tokens_")], "sd": None, "seeds": 0} if sizes else None
    found = row.get("agreement") if metric == "agreement" else row["metrics"].get(metric)
    return {"measured": found["mean"], "sd": found["sd"], "seeds": len(found["seeds"])} if found else None
