"""Evidence in context against cost relative to the base agent: one point per policy, and the cheapest one at each level of evidence.

Costs and evidence are pooled over a policy's traces; intervals are 95 % bootstraps over tasks. `cost_parts` says where the cost comes
from. Pure: knows runs as costs and rates.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pamer_lab.analysis.equal_tokens import equal_tokens
from pamer_lab.analysis.outcomes import Outcome
from pamer_lab.counts import counted
from pamer_lab.runs.cost import NO_TIMES, PARTS

LEVELS = (80, 90, 95)
"""Percent of evidence in context."""
RESAMPLES = 2_000


def frontier(outcomes: Iterable[Outcome], *, seed: int = 0) -> dict[str, Any]:
    """Points by policy, cheapest first; the cheapest policy at each level of evidence; and comparisons at equal tokens.

    `frontier` marks the Pareto frontier: no other point is at least as good in cost and evidence in context, and better in one of them.
    """
    by_policy: dict[str, list[Outcome]] = {}
    for entry in outcomes:
        by_policy.setdefault(entry.policy, []).append(entry)
    points = [found for found in (_point(policy, part, seed) for policy, part in by_policy.items()) if found]
    points.sort(key=lambda point: (point["cost_vs_base"], point["policy"]))
    for point in points:
        point["frontier"] = point["evidence_pct"] is not None and not any(_beats(other, point) for other in points)
    everything = [entry for part in by_policy.values() for entry in part]
    counts = {"traces": _traces(everything), "untimed": _traces(entry for entry in everything if entry.untimed)}
    cheapest = [_cheapest(points, level) for level in LEVELS]
    return {"points": points, "cheapest": cheapest, **counts, "equal_tokens": equal_tokens(by_policy, seed=seed)}


def _traces(outcomes: Iterable[Outcome]) -> int:
    return len({entry.trace_id for entry in outcomes})


def without_times(found: Mapping[str, Any]) -> str:
    """What the cost model assumes for traces without timestamps; empty if all have them."""
    if not found["untimed"] or found["untimed"] == found["traces"] == 1:
        return NO_TIMES if found["untimed"] else ""
    share = f"{found['untimed']:,} of {counted(found['traces'], 'trace')}"
    return f"{share} have no timestamps, so all their earlier requests count as still cached"


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one["evidence_pct"] is None or one is other:
        return False
    better = one["cost_vs_base"] < other["cost_vs_base"] or one["evidence_pct"] > other["evidence_pct"]
    return bool(better and one["cost_vs_base"] <= other["cost_vs_base"] and one["evidence_pct"] >= other["evidence_pct"])


def _point(policy: str, part: Sequence[Outcome], seed: int) -> dict[str, Any] | None:
    """A policy's point; None if the base agent costs nothing."""
    tasks = sorted({entry.task for entry in part})
    sums = np.array([[sum(getattr(entry, name) for entry in part if entry.task == task) for name in _SUMMED] for task in tasks])
    total = dict(zip(_SUMMED, sums.sum(axis=0).tolist(), strict=True))
    if not total["base"]:
        return None
    picks = np.random.default_rng(seed).integers(0, len(tasks), (RESAMPLES, len(tasks)))  # (resamples, tasks)
    again = sums[picks].sum(axis=1)  # (resamples, sums)
    cost_low, cost_high = _interval(again[:, 0], again[:, 1])
    low, high = _interval(100 * again[:, 2], again[:, 3])
    return {
        "policy": policy,
        "traces": len(part),
        "changed": sum(entry.changed for entry in part),
        "tasks": len(tasks),
        "cost_vs_base": total["cost"] / total["base"],
        "cost_low": cost_low,
        "cost_high": cost_high,
        "evidence_pct": 100 * total["kept"] / total["uses"] if total["uses"] else None,
        "evidence_low": low,
        "evidence_high": high,
        "uses": int(total["uses"]),
        "tokens_vs_base": total["tokens"] / total["base_tokens"] if total["base_tokens"] else None,
        "mean_peak": sum(entry.peak for entry in part) / len(part),
        "uncached_share": 1 - total["read"] / total["sent"] if total["sent"] else 0.0,
    }


_SUMMED = ("cost", "base", "kept", "uses", "tokens", "base_tokens", "read", "sent")


def _interval(above: Any, below: Any) -> tuple[float | None, float | None]:
    """The middle 95 % of the ratios; resamples with a zero denominator are left out."""
    some = below > 0
    if not some.any():
        return None, None
    low, high = np.percentile(above[some] / below[some], [2.5, 97.5])
    return float(low), float(high)


def _cheapest(points: Sequence[Mapping[str, Any]], level: int) -> dict[str, Any]:
    """The cheapest policy with at least `level` percent of the evidence in context, if there is one.

    If nothing is cheaper than the base agent, it is the base agent and not a policy that never acted.
    """
    enough = [point for point in points if point["evidence_pct"] is not None and point["evidence_pct"] >= level]
    enough.sort(key=lambda point: (point["cost_vs_base"], point["policy"] != "base"))
    names = ("policy", "cost_vs_base", "cost_low", "cost_high", "evidence_pct", "evidence_low", "evidence_high", "traces")
    return {"level": level} | ({name: enough[0][name] for name in names} if enough else {"policy": None})


def as_markdown(found: Mapping[str, Any]) -> str:
    """The points and the cheapest policies as Markdown tables."""
    lines = [
        "| policy | traces | changes | cost vs base | evidence in context | tokens vs base | mean peak | uncached input |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for point in found["points"]:
        name = f"**{point['policy']}**" if point["frontier"] else point["policy"]
        tokens = f"{point['tokens_vs_base']:.2f}" if point["tokens_vs_base"] is not None else ""
        cost, kept = _ranged(point, "cost", "cost_vs_base", 2), _ranged(point, "evidence", "evidence_pct", 0)
        rest = f"{tokens} | {point['mean_peak']:,.0f} | {100 * point['uncached_share']:.0f} %"
        lines.append(f"| {name} | {point['traces']} | {point['changed']} | {cost} | {kept} | {rest} |")
    lines += ["", "| minimum evidence | cheapest policy | cost vs base | evidence in context |", "| --- | --- | ---: | ---: |"]
    for row in found["cheapest"]:
        cells = (
            [row["policy"], _ranged(row, "cost", "cost_vs_base", 2), _ranged(row, "evidence", "evidence_pct", 0)]
            if row["policy"]
            else ["none", "", ""]
        )
        lines.append(f"| {row['level']} % | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _ranged(row: Mapping[str, Any], prefix: str, name: str, digits: int) -> str:
    if row[name] is None:
        return ""
    unit = " %" if prefix == "evidence" else ""
    if row["traces"] < 2 or row[f"{prefix}_low"] is None:
        return f"{row[name]:.{digits}f}{unit}"
    return f"{row[name]:.{digits}f}{unit} [{row[f'{prefix}_low']:.{digits}f}, {row[f'{prefix}_high']:.{digits}f}]"


def cost_parts(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per policy, pooled over its runs, cheapest first; policies whose base agent costs nothing are left out."""
    by_policy: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        by_policy.setdefault(run["policy"], []).append(run)
    rows = [_row(policy, part) for policy, part in by_policy.items() if sum(run["cost"]["base_total"] for run in part)]
    return sorted(rows, key=lambda row: (row["cost_vs_base"], row["policy"]))


def _row(policy: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    base = sum(run["cost"]["base_total"] for run in runs)
    shares = {name: sum(run["cost"][name] for run in runs) / base for name in PARTS}
    prefix = [run["totals"]["prefix"] for run in runs]
    return {
        "policy": policy,
        "traces": len(runs),
        "cost_vs_base": sum(shares.values()),
        **shares,
        "if_previous_only": sum(run["cost"]["if_previous_only"]["total"] for run in runs) / base,
        "compressions": sum(run["totals"]["actions"].get("compress", 0) for run in runs),
        "recalls": sum(run["totals"]["actions"].get("recall", 0) for run in runs),
        "breaks": sum(found["breaks"] for found in prefix),
        "other_breaks": sum(found["violations"] for found in prefix),
    }


def parts_markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| policy | cost vs base | read | written | uncached | output | auxiliary | previous request only "
        "| compressions | breaks | breaks without compression |",
        "| --- |" + " ---: |" * 10,
    ]
    for row in rows:
        money = " | ".join(f"{row[name]:.2f}" for name in ("cost_vs_base", *PARTS, "if_previous_only"))
        lines.append(f"| {row['policy']} | {money} | {row['compressions']:,} | {row['breaks']:,} | {row['other_breaks']:,} |")
    return "\n".join(lines) + "\n"
