"""Policies compared with a sliding window and a periodic summary that use the same number of tokens.

A yardstick is a policy with one size parameter, run at two or more sizes; the base agent is its largest. Between two sizes, evidence and
cost are interpolated in pooled tokens. Differences are paired by task, with 95 % bootstraps over tasks; a resample in which the policy's
tokens are outside the range of sizes has no difference and is left out. Pure: knows runs as costs and rates.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pamer_lab.analysis.outcomes import Outcome

YARDSTICKS = ("sliding-window", "periodic-summary")
BASE = "base"
RESAMPLES = 1_000
_SUMMED = ("tokens", "base_tokens", "kept", "uses", "cost", "base")
_BELOW = [1, 3, 5]
"""Indices of the denominators in `_SUMMED`."""
_SIZED = re.compile(rf"({'|'.join(YARDSTICKS)})(:\d+)?")


def equal_tokens(by_policy: Mapping[str, Sequence[Outcome]], *, seed: int = 0) -> list[dict[str, Any]]:
    """One row per policy and yardstick, over the traces they share; no rows for a yardstick that ran at one size only.

    The row of a policy whose tokens are outside the range of sizes has no difference.
    """
    rows = []
    for yardstick in YARDSTICKS:
        sizes = [name for name in by_policy if (found := _SIZED.fullmatch(name)) and found[1] == yardstick]
        if len(sizes) >= 2 and BASE in by_policy:
            others = (name for name in by_policy if name != BASE and not _SIZED.fullmatch(name))
            rows += [row for name in others if (row := _row(name, yardstick, [*sizes, BASE], by_policy, seed))]
    return rows


def _row(name: str, yardstick: str, sizes: list[str], by_policy: Mapping[str, Sequence[Outcome]], seed: int) -> dict[str, Any] | None:
    names = [name, *sizes]
    common = set.intersection(*({entry.trace_id for entry in by_policy[each]} for each in names))
    tasks = sorted({entry.task for entry in by_policy[name] if entry.trace_id in common})
    sums = np.array([_sums(by_policy[each], tasks, common) for each in names])  # (policies, tasks, sums)
    if not tasks or not sums[0, :, _BELOW].any(axis=1).all():
        return None  # no evidence was used, or the base agent has no tokens or costs nothing
    measured = _against(sums.sum(axis=1))
    picks = np.random.default_rng(seed).integers(0, len(tasks), (RESAMPLES, len(tasks)))
    again = [found for pick in picks if (found := _against(sums[:, pick].sum(axis=1)))]
    row = {"policy": name, "yardstick": yardstick, "traces": len(common), "tasks": len(tasks), "resamples": len(again)}
    row["tokens_vs_base"] = float(sums[0, :, 0].sum() / sums[0, :, 1].sum())
    for at, unit in enumerate(("evidence", "cost")):
        low, high = np.percentile([found[at] for found in again], [2.5, 97.5]).tolist() if measured and again else (None, None)
        row |= {f"{unit}_difference": measured and measured[at], f"{unit}_low": low, f"{unit}_high": high}
    return row


def _sums(part: Sequence[Outcome], tasks: Sequence[str], common: set[str]) -> list[list[float]]:
    """The sums of each task."""
    return [
        [sum(getattr(entry, name) for entry in part if entry.task == task and entry.trace_id in common) for name in _SUMMED]
        for task in tasks
    ]


def _against(totals: Any) -> tuple[float, float] | None:
    """The first policy minus the yardstick at the same tokens: evidence in percentage points, and cost relative to base."""
    if not totals[:, _BELOW].all():
        return None
    tokens, kept, cost = (totals[:, at] / totals[:, at + 1] for at in (0, 2, 4))
    order = 1 + np.argsort(tokens[1:])
    if not tokens[order[0]] <= tokens[0] <= tokens[order[-1]]:
        return None
    evidence, money = (float(own[0] - np.interp(tokens[0], tokens[order], own[order])) for own in (kept, cost))
    return 100 * evidence, money


def equal_tokens_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table, by yardstick, most evidence first."""
    lines = [
        "| policy | tokens vs base | yardstick at equal tokens | evidence difference, points | cost difference, × base |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for row in sorted(rows, key=_best_first):
        cells = (
            ("outside the range of sizes", "")
            if row["evidence_difference"] is None
            else (signed_range(row, "evidence", 1), signed_range(row, "cost", 2))
        )
        lines.append(f"| {row['policy']} | {row['tokens_vs_base']:.2f} | {row['yardstick']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _best_first(row: Mapping[str, Any]) -> tuple[str, bool, float]:
    difference = row["evidence_difference"]
    return row["yardstick"], difference is None, -(difference or 0.0)


def signed_range(row: Mapping[str, Any], unit: str, digits: int) -> str:
    """A signed difference, with its interval if there are several tasks."""
    if row["tasks"] < 2 or row[f"{unit}_low"] is None:
        return f"{row[f'{unit}_difference']:+.{digits}f}"
    return f"{row[f'{unit}_difference']:+.{digits}f} [{row[f'{unit}_low']:+.{digits}f}, {row[f'{unit}_high']:+.{digits}f}]"
