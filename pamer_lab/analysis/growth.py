"""Runs -> tables across traces: context size per turn, totals by policy, and averages of recorded scores (Appendix D.1).

Polars over stored rows, one read per table. A finished trace adds nothing to later turns, and every mean has its n. Replay cannot change
a reward: scores are what the sources recorded. `task_weighted` is the mean over tasks, which weighs each domain by its number of tasks
(80/50/60/70 of 260 in the paper); `equal_weight` is the mean of the domains' means (Pilot40). Replicas of one task are averaged first.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pamer_lab.runs.turn_rows import TURNS
from pamer_lab.storage import in_parts, is_in
from pamer_lab.workspace import RUNS, Workspace
from pamer_lab.workspace.catalogue import Owners
from pamer_lab.workspace.store import TOTALS

REFERENCE_LINE = 128_000
"""Tokens: the 128K line of the paper's figures, a reference only; nothing enforces it."""
RESAMPLES = 2_000
"""Bootstrap resamples of an interval."""
STORED = [
    *"run_id trace_id question_id task_id policy profile status turns".split(),
    *TOTALS,
    "reduction_pct",
    "demo",
]
COUNTING = ["tokenizer", "tokens_kind"]
"""How a run's tokens were counted: from its head, since its trace may be counted differently."""
RUN_COLUMNS = [*STORED, *COUNTING, "heads"]
"""`heads`: the hash of the classifier heads that voted; empty if none did."""


class _Head(msgspec.Struct):
    """The fields that are read from a run's head."""

    tokenizer: str
    tokens_kind: str
    trace_turns: int
    heads: dict[str, str] = {}


def run_table(workspace: Workspace, run_ids: Iterable[str] | None = None, trace_ids: Iterable[str] | None = None) -> pl.DataFrame:
    """One row per finished run, optionally only those with these ids or of these traces. Among runs of one policy and trace, the one to
    compare is last (`newest_runs`)."""
    column, wanted = ("run_id", run_ids) if run_ids is not None else ("trace_id", trace_ids)
    if not workspace.path.exists() or not workspace.database.exists(RUNS):
        return pl.DataFrame(schema=dict.fromkeys(RUN_COLUMNS, pl.String))
    filters = [""] if wanted is None else [f" AND {is_in(column, part)}" for part in in_parts(wanted)] or [" AND false"]
    columns = [*STORED, "started", "head"]
    found = pl.concat([pl.DataFrame(workspace.database.arrow(RUNS, where=f"status = 'done'{part}", columns=columns)) for part in filters])
    heads = [msgspec.msgpack.decode(head, type=_Head) for head in found["head"]]
    facts = pl.DataFrame(
        [[head.tokenizer, head.tokens_kind, head.trace_turns, head.heads.get("sha256", "")] for head in heads],
        schema={"tokenizer": pl.String, "tokens_kind": pl.String, "trace_turns": pl.Int64, "heads": pl.String},
        orient="row",
    )
    whole = (pl.col("turns") == pl.col("trace_turns")).alias("whole")
    return found.hstack(facts).with_columns(whole).sort("policy", "trace_id", "whole", "started", "run_id").select(RUN_COLUMNS)


def with_heads(runs: pl.DataFrame, heads: str) -> pl.DataFrame:
    """Runs in which the heads with this hash voted, no heads voted, or the policy names its own; an empty hash keeps all."""
    own = pl.col("policy").str.contains(":heads=", literal=True)
    return runs.filter((pl.col("heads") == heads) | (pl.col("heads") == "") | own) if heads else runs


def newest_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """One run per policy, trace and profile: the newest, but a run over all turns takes precedence over one with a limit."""
    return runs.unique(["policy", "trace_id", "profile"], keep="last", maintain_order=True)


def opened_with(rows: Sequence[Mapping[str, Any]]) -> Owners:
    """Whose traces a comparison opens with: the user's own if there are any."""
    return "my traces" if any(not row["demo"] for row in rows) else "all"


def covering(runs: pl.DataFrame, policies: Sequence[str]) -> list[str]:
    """The policies that have as many traces as the one with the most, in the given order."""
    counts = dict(runs.group_by("policy").agg(pl.col("trace_id").n_unique()).iter_rows()) if not runs.is_empty() else {}
    most = max((counts.get(policy, 0) for policy in policies), default=0)
    return [policy for policy in policies if most and counts.get(policy, 0) == most]


def complete_traces(runs: pl.DataFrame, policies: Collection[str]) -> set[str]:
    """Traces that were replayed through every one of these policies."""
    counts = runs.group_by("trace_id").agg(pl.col("policy").n_unique().alias("policies"))
    return set(counts.filter(pl.col("policies") == len(policies))["trace_id"])


def missing_runs(runs: pl.DataFrame, policies: Iterable[str], trace_ids: Sequence[str]) -> dict[str, list[str]]:
    """Traces that each policy has not been replayed on yet; policies without missing traces are left out."""
    have = set(zip(runs["policy"].to_list(), runs["trace_id"].to_list(), strict=True)) if not runs.is_empty() else set()
    found = {policy: [trace_id for trace_id in trace_ids if (policy, trace_id) not in have] for policy in policies}
    return {policy: names for policy, names in found.items() if names}


def turn_table(workspace: Workspace, runs: pl.DataFrame) -> pl.DataFrame:
    """One row per turn of these runs: policy, trace, turn, raw and active tokens."""
    columns = ["run_id", "t", "active_tokens", "raw_tokens"]
    if runs.is_empty():
        return pl.DataFrame(
            schema={"policy": pl.String, "trace_id": pl.String, "t": pl.Int32, "active_tokens": pl.Int64, "raw_tokens": pl.Int64}
        )
    # Beyond a few hundred ids, one pass over the table is faster than a filter that names each, unless most rows are of other runs.
    ids = runs["run_id"].to_list()
    named = len(ids) <= 400 or workspace.database.count(RUNS) > 4 * len(ids)
    filters = [is_in("run_id", part) for part in in_parts(ids)] if named else [""]
    turns = pl.concat([pl.DataFrame(workspace.database.arrow(TURNS, where=where, columns=columns)) for where in filters])
    return turns.join(runs.select("run_id", "policy", "trace_id"), on="run_id")


def mean_context(turns: pl.DataFrame) -> pl.DataFrame:
    """Mean active context per policy and turn over the traces still running, with their number (Appendix E.1)."""
    return (
        turns.group_by("policy", "t")
        .agg(
            pl.col("active_tokens").mean().alias("mean_active"),
            pl.col("active_tokens").quantile(0.1).alias("low"),
            pl.col("active_tokens").quantile(0.9).alias("high"),
            pl.len().alias("running"),
        )
        .sort("policy", "t")
    )


def policy_table(runs: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """The totals of each policy over its traces; the reduction carries a 95% interval resampled by task (Appendix D.2)."""
    if runs.is_empty():
        return pl.DataFrame()
    sums = ["main_input", "main_output", "aux_input", "aux_output", "total", "base_total", "cached_input", "uncached_input"]
    table = runs.group_by("policy").agg(
        pl.len().alias("traces"),
        pl.col("question_id").n_unique().alias("tasks"),
        pl.col("peak_active").mean().alias("mean_peak"),
        pl.col("total").mean().alias("mean_total"),
        *(pl.col(name).sum() for name in sums),
    )
    intervals = [{"policy": name[0], **reduction(part, seed=seed)} for name, part in runs.group_by("policy")]
    return table.join(pl.DataFrame(intervals), on="policy").join(counting(runs), on="policy").sort("policy")


def counting(runs: pl.DataFrame) -> pl.DataFrame:
    """Per policy, whether demo data is included and how tokens were counted."""
    return runs.group_by("policy").agg(pl.col("demo").any(), *(pl.col(name).unique().sort().str.join("; ") for name in COUNTING))


def reduction(runs: pl.DataFrame, *, seed: int = 0) -> dict[str, float]:
    """`100 (1 - sum T / sum T_base)` of one policy's runs, with its bootstrap interval over tasks."""
    tasks = runs.group_by("question_id").agg(pl.col("total").sum(), pl.col("base_total").sum()).sort("question_id")
    total, base = tasks["total"].to_numpy(), tasks["base_total"].to_numpy()
    picks = np.random.default_rng(seed).integers(0, len(total), (RESAMPLES, len(total)))  # (resamples, tasks)
    again = 100 * (1 - total[picks].sum(axis=1) / np.maximum(base[picks].sum(axis=1), 1))
    low, high = np.percentile(again, [2.5, 97.5])
    return {
        "reduction_pct": float(100 * (1 - total.sum() / max(base.sum(), 1))),
        "reduction_low": float(low),
        "reduction_high": float(high),
    }


NO_DOMAIN = "all"
"""Domain of a trace whose source names none."""


def recorded_scores(workspace: Workspace, trace_ids: Iterable[str]) -> dict[str, Any]:
    """Score averages of the traces that recorded a reward (None if none did), and the tokens their sources recorded.

    `traces` counts all given traces. `tokens_per_trace` is the mean of input and output over the `usage_traces`, which have both a reward
    and recorded usage.
    """
    rows: list[dict[str, Any]] = []
    used: list[int] = []
    wanted = set(trace_ids)
    for row in workspace.trace_rows("reward IS NOT NULL") if workspace.path.exists() else []:
        if row["trace_id"] in wanted:
            trace = workspace.trace(row["trace_id"]).trace
            domain = str(trace.meta.get("domain") or NO_DOMAIN)
            rows.append({"task": row["question_id"], "domain": domain, "reward": float(row["reward"])})
            spent = [trace.usage] if trace.usage else [message.usage for message in trace.messages if message.usage]
            used += [tokens] if (tokens := sum(one.input_tokens + one.output_tokens for one in spent)) else []
    return score_averages(pl.DataFrame(rows, schema={"task": pl.String, "domain": pl.String, "reward": pl.Float64})) | {
        "traces": len(wanted),
        "usage_traces": len(used),
        "tokens_per_trace": sum(used) / len(used) if used else None,
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
