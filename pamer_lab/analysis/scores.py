"""Recorded rewards -> score averages (Appendix D.1). Replay cannot change a reward: these are what the sources recorded.

`task_weighted` is the mean over tasks, which weighs each domain by its number of tasks (80/50/60/70 of 260 in the paper);
`equal_weight` is the mean of the domains' means (Pilot40). Replicas of one task are averaged first.
"""

from collections.abc import Iterable
from typing import Any

import polars as pl

from pamer_lab.workspace import Workspace

NO_DOMAIN = "all"
"""Domain of a trace whose source names none."""


def recorded_scores(workspace: Workspace, trace_ids: Iterable[str]) -> dict[str, Any]:
    """Score averages of these traces, with how many recorded a reward; None where none did."""
    rows = []
    wanted = set(trace_ids)
    for row in workspace.trace_rows("reward IS NOT NULL") if workspace.path.exists() else []:
        if row["trace_id"] in wanted:
            meta = workspace.trace(row["trace_id"]).trace.meta
            rows.append({"task": row["question_id"], "domain": str(meta.get("domain") or NO_DOMAIN), "reward": float(row["reward"])})
    return score_averages(pl.DataFrame(rows, schema={"task": pl.String, "domain": pl.String, "reward": pl.Float64})) | {
        "traces": len(wanted)
    }


def score_averages(rewards: pl.DataFrame) -> dict[str, Any]:
    """Averages of rewards with columns `task`, `domain`, `reward`; scores are 100 times the mean reward."""
    if rewards.is_empty():
        return {"kind": "recorded", "tasks": 0, "task_weighted": None, "equal_weight": None, "domains": {}}
    tasks = rewards.group_by("domain", "task").agg(pl.col("reward").mean())
    domains = tasks.group_by("domain").agg(pl.col("reward").mean() * 100, pl.len().alias("tasks")).sort("domain")
    weights, scores = domains["tasks"].to_numpy(), domains["reward"].to_numpy()
    return {
        "kind": "recorded",
        "tasks": tasks.height,
        "task_weighted": float((scores * weights).sum() / weights.sum()),
        "equal_weight": float(scores.mean()),
        "domains": {row["domain"]: {"score": row["reward"], "tasks": row["tasks"]} for row in domains.iter_rows(named=True)},
    }
