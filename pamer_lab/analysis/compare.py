"""Runs side by side as one frame. Knows runs and traces as values; needs no workspace."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.runs.evidence import Use, fates, survival_rates, uses
from pamer_lab.runs.timeline import lay_out
from pamer_lab.runs.values import Run
from pamer_lab.trajectory.values import Trace

COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("trace_id", "run_id", "policy"), pl.String),
    **dict.fromkeys(("turns", "total"), pl.Int64),
    "against": pl.String,
    "change_pct": pl.Float64,
    **dict.fromkeys(("peak_active", "compressions", "recalls", "fallbacks", "cached_input", "uncached_input"), pl.Int64),
    "evidence_uses": pl.Int64,
    "evidence_in_context_pct": pl.Float64,
    **dict.fromkeys(("tokenizer", "tokens_kind"), pl.String),
}


def compare(runs: Sequence[Run], traces: Iterable[Trace] = ()) -> pl.DataFrame:
    """One row per run, in the order given; the columns are in `docs/python.md`.

    `runs`: of one or several traces. Each is compared with the `base` run of its trace, or else with the first one, among the runs with
    the same number of turns and the same tokenizer.
    `traces`: the replayed traces, needed for the evidence columns, which are null for a run whose trace is not given.
    """
    known = {trace.trace_id: trace for trace in traces}
    used: dict[tuple[str, int], list[Use]] = {}
    rows = []
    for run in runs:
        trace = known.get(run.head.trace_id)
        rows.append(_row(run, _reference(run, runs)) | (_evidence(run, trace, used) if trace else {}))
    return pl.DataFrame(rows, schema=COLUMNS)


def _reference(run: Run, runs: Sequence[Run]) -> Run:
    """The run to compare with, which may be the run itself."""
    alike = [other for other in runs if _basis(other) == _basis(run)]
    return next((other for other in alike if other.head.policy == "base"), alike[0])


def _basis(run: Run) -> tuple[str, int, str]:
    return run.head.trace_id, len(run.turns), run.head.tokenizer


def _row(run: Run, reference: Run) -> dict[str, Any]:
    head, totals, before = run.head, run.totals, reference.totals["total"]
    actions = totals["actions"]
    return {
        "trace_id": head.trace_id,
        "run_id": head.run_id,
        "policy": head.policy,
        "turns": len(run.turns),
        "total": totals["total"],
        "against": reference.head.policy,
        "change_pct": 100 * (totals["total"] / before - 1) if before else None,
        "peak_active": totals["peak_active"],
        "compressions": actions["compress"],
        "recalls": actions["recall"],
        "fallbacks": actions["fallback"],
        "cached_input": totals["cached_input"],
        "uncached_input": totals["uncached_input"],
        "tokenizer": head.tokenizer,
        "tokens_kind": head.tokens_kind,
    }


def _evidence(run: Run, trace: Trace, used: dict[tuple[str, int], list[Use]]) -> dict[str, Any]:
    """Uses of evidence and the share that was in context; `used` keeps the uses of a trace for its other runs."""
    # Which evidence is used does not depend on how tokens are counted.
    timeline = lay_out(trace, MessageTokens(EstimatedCounter()), turn_limit=len(run.turns))
    key = (trace.trace_id, len(run.turns))
    if key not in used:
        used[key] = uses(timeline)
    rates = survival_rates(fates(timeline, run.turns, used[key]))
    return {"evidence_uses": rates["uses"], "evidence_in_context_pct": rates["in_context_pct"]}
