"""The tables of the growth page in numbers, for the screen and for files: one row per policy, and one per trace and policy. Pure.

Changes are in percent of the baseline's value, negative for a decrease; null if the baseline has no value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

KEPT = "trace_id question_id turns total peak_active reduction_pct main_input cached_input uncached_input aux_input aux_output".split()
"""Columns of a run that the table per trace keeps."""


def policy_lines(
    table: pl.DataFrame,
    policies: Sequence[str],
    baseline: str,
    kept: Mapping[str, Mapping[str, Any]],
    costs: Mapping[str, tuple[float, float]],
    currency: str,
) -> pl.DataFrame:
    """`policy_table` in the order of `policies`, with evidence, cost and each change against the baseline.

    `kept`: rates of used evidence by policy. `costs`: cost of each policy and of the base agent on the same traces.
    """
    rows = {row["policy"]: row for row in table.to_dicts()}
    base = rows[baseline]
    lines = []
    for policy in policies:
        row, rates, before = rows[policy], kept.get(policy), kept.get(baseline)
        cost, cost_base = costs.get(policy, (None, None))
        reference = costs[baseline][0] / base["traces"] if baseline in costs else None
        lines.append(
            row
            | {
                "baseline": baseline,
                "total_change_pct": _change(row["mean_total"], base["mean_total"]),
                "peak_change_pct": _change(row["mean_peak"], base["mean_peak"]),
                "uncached_change_pct": _change(row["uncached_input"] / row["traces"], base["uncached_input"] / base["traces"]),
                "evidence_uses": rates["uses"] if rates else None,
                "evidence_in_context_pct": rates["in_context_pct"] if rates else None,
                "evidence_change_points": rates["in_context_pct"] - before["in_context_pct"] if rates and before else None,
                "cost": cost,
                "cost_vs_base": cost / cost_base if cost is not None and cost_base else None,
                "cost_change_pct": _change(cost / row["traces"], reference) if cost is not None else None,
                "currency": currency if cost is not None else None,
            }
        )
    return pl.DataFrame(lines, infer_schema_length=None)


def trace_table(
    runs: pl.DataFrame,
    policies: Sequence[str],
    baseline: str,
    names: Mapping[str, str],
    rewards: Mapping[str, float | None] | None = None,
) -> pl.DataFrame:
    """One row per trace and policy: totals, peak, and the change of both against the baseline's run of the same trace.

    The largest traces come first; within a trace, policies keep the given order. `names`: display names by trace id; `rewards`: what
    the sources recorded.
    """
    sizes = dict(runs.group_by("trace_id").agg(pl.col("base_total").max()).iter_rows())
    order = {policy: number for number, policy in enumerate(policies)}
    found = [row for row in runs.iter_rows(named=True) if row["policy"] in order]
    bases = {row["trace_id"]: row for row in found if row["policy"] == baseline}
    found.sort(key=lambda row: (-sizes[row["trace_id"]], row["trace_id"], order[row["policy"]]))
    lines = []
    for row in found:
        base = bases.get(row["trace_id"])
        lines.append(
            {"name": names.get(row["trace_id"], row["trace_id"]), "policy": row["policy"]}
            | {key: row[key] for key in KEPT if key in row}
            | {
                "baseline": baseline,
                "total_change_pct": _change(row["total"], base["total"]) if base else None,
                "peak_change_pct": _change(row["peak_active"], base["peak_active"]) if base else None,
                "recorded_reward": (rewards or {}).get(row["trace_id"]),
            }
            | {key: row[key] for key in ("demo", "tokenizer", "tokens_kind")}
        )
    return pl.DataFrame(lines, infer_schema_length=None, schema_overrides={"recorded_reward": pl.Float64})


def _change(value: float, base: float | None) -> float | None:
    return 100 * (value / base - 1) if base else None
