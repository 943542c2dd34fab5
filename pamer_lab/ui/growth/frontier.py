"""Cost against evidence on the Context growth page: the chart, and the cheapest policy at each level of evidence."""

from typing import Any

import polars as pl
import streamlit as st

from pamer_lab.analysis.equal_tokens import signed_range
from pamer_lab.analysis.frontier import frontier, without_times
from pamer_lab.analysis.growth import counting
from pamer_lab.analysis.outcomes import outcome
from pamer_lab.figures import cost as cost_figures
from pamer_lab.figures.text import counted
from pamer_lab.prices import PriceTable
from pamer_lab.runs.evidence import survival_rates
from pamer_lab.runs.values import FIXED_ACTIONS
from pamer_lab.spreadsheet import csv_text
from pamer_lab.ui.shared.charts import drawing, show_chart
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.prices import chosen_prices, cost_of, price_key
from pamer_lab.ui.shared.runs import fates_of, open_runs, run_store, version
from pamer_lab.ui.shared.text import in_code
from pamer_lab.ui.shared.words import HINTS

MOST_RUNS = 400
"""Runs whose cost and evidence are computed on one page."""
READ_TOGETHER = 16
"""Runs whose turns are in memory at once."""


@st.cache_resource(max_entries=8, show_spinner="Pricing the runs…")
def _found(path: str, at: tuple[int, int], run_ids: tuple[str, ...], key: bytes, _prices: PriceTable) -> dict[str, Any]:
    heads = sorted(run_store().heads(run_ids=run_ids), key=lambda head: head.trace_id)  # so that a trace's evidence is searched once
    outcomes = []
    for start in range(0, len(heads), READ_TOGETHER):
        for run in open_runs(heads[start : start + READ_TOGETHER]):
            facts = {"policy": run.head.policy, "trace_id": run.head.trace_id, "question_id": run.head.question_id}
            outcomes.append(outcome(facts, run.totals, cost_of(run, _prices).as_json(), survival_rates(fates_of(run))))
    return frontier(outcomes)


def cost_frontier(runs: pl.DataFrame) -> None:
    """The chart and the table; uses the prices chosen above the table of totals."""
    if runs.height > MOST_RUNS:
        st.caption(f"Cost and evidence are computed for at most {MOST_RUNS} runs; choose fewer traces to see them.")
        return
    prices = chosen_prices()
    ids = tuple(runs["run_id"])
    found = _found(str(workspace().path), version(), ids, price_key(prices), prices)
    if not any(point["evidence_pct"] is not None for point in found["points"]):
        st.caption("No recorded action of these traces uses evidence, or the base agent costs nothing at these prices.")
        return
    st.markdown(_answer(found))
    several = "intervals are 95 % bootstraps over tasks" if found["traces"] > 1 else "a single trace has no interval"
    facts = [
        f"Simulated with prices {in_code(prices.described, 300)}",
        without_times(found),
        f"n = {counted(found['traces'], 'trace')}, {several}",
    ]
    answer = f"{'; '.join(filter(None, facts))}. The line is the Pareto frontier of cost and evidence. {FIXED_ACTIONS}"
    show_chart(
        "Evidence in context against cost",
        drawing("frontier", (version(), ids, price_key(prices)), lambda colours: cost_figures.frontier(found, colours)),
        answer,
        key="frontier",
        hint=f"{HINTS['cost']} {HINTS['evidence']}",
        csv=lambda: frontier_csv(found, runs, prices),
    )
    st.dataframe([_line(row) for row in found["cheapest"]], hide_index=True)
    if found["equal_tokens"]:
        st.markdown("**At equal tokens**", help=HINTS["equal_tokens"])
        st.dataframe([_equal_line(row) for row in found["equal_tokens"]], hide_index=True)


def frontier_csv(found: dict[str, Any], runs: pl.DataFrame, prices: PriceTable) -> str:
    """The points of the chart, cheapest first, with the prices and how the tokens were counted."""
    points = pl.DataFrame(found["points"], infer_schema_length=None)
    said = {"prices": prices.name, "prices_date": prices.date, "currency": prices.currency, "cost_kind": "simulated"}
    own = [pl.lit(value).alias(name) for name, value in said.items()]
    return csv_text(points.with_columns(*own).join(counting(runs), on="policy", maintain_order="left"))


def _answer(found: dict[str, Any]) -> str:
    """The sentence above the chart: the cheapest policy at the middle level of evidence."""
    row = found["cheapest"][len(found["cheapest"]) // 2]
    asked = f"Cheapest policy that keeps at least {row['level']} % of the evidence"
    if row["policy"] is None:
        return f"{asked}: none of these."
    return f"{asked}: **{in_code(row['policy'])}**, {row['cost_vs_base']:.2f}× base (n = {counted(row['traces'], 'trace')})."


def _line(row: dict[str, Any]) -> dict[str, str]:
    if row["policy"] is None:
        return {"Minimum evidence": f"{row['level']} %", "Cheapest policy": "none", "Cost vs base": "", "Evidence in context": ""}
    several = row["traces"] > 1
    cost = f"{row['cost_vs_base']:.2f}" + (f" [{row['cost_low']:.2f}, {row['cost_high']:.2f}]" if several else "")
    kept = f"{row['evidence_pct']:.1f} %" + (f" [{row['evidence_low']:.1f}, {row['evidence_high']:.1f}]" if several else "")
    return {"Minimum evidence": f"{row['level']} %", "Cheapest policy": row["policy"], "Cost vs base": cost, "Evidence in context": kept}


def _equal_line(row: dict[str, Any]) -> dict[str, str]:
    """A policy against a yardstick that uses the same number of tokens."""
    known = row["evidence_difference"] is not None
    return {
        "Policy": row["policy"],
        "Tokens vs base": f"{row['tokens_vs_base']:.2f}",
        "Against": row["yardstick"],
        "Evidence difference, points": signed_range(row, "evidence", 1) if known else "outside the range of sizes",
        "Cost difference, × base": signed_range(row, "cost", 2) if known else "",
        "Traces": f"{row['traces']:,}",
    }
